"""Suspension, deletion, deadlines, faults, and an operator that is killed."""

import json
import time

import pytest
from kubernetes import client

from .conftest import OPERATOR_NAMESPACE, PASS, Namespace, install, kubectl, reward_if, until

COUNT = "echo run >> /app/runs; sleep 6\n"
ONCE = "sleep 4; [ $(wc -l < /app/runs) -eq 1 ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"


def _kill_operator() -> None:
    """SIGKILL, without a chance to say goodbye."""
    kubectl(
        "-n",
        OPERATOR_NAMESPACE,
        "delete",
        "pod",
        "-l",
        "app.kubernetes.io/name=multistep-operator",
        "--grace-period=0",
        "--force",
    )


@pytest.mark.parametrize("moment", ["-step-1", "-verifier-1"])
def test_killed_operator_goes_on_as_if_nothing_had_happened(namespace: Namespace, moment: str) -> None:
    namespace.create(
        namespace.files({"a": {"solution/solve.sh": COUNT}, "b": {"solution/solve.sh": "true\n"}}, tests__test_sh=ONCE)
    )
    namespace.running_pod(moment)
    _kill_operator()
    status = namespace.finish(200)
    assert (status["phase"], status["rewards"], status["attempt"]) == ("Succeeded", {"reward": 1}, 1)
    names = sorted(
        pod.metadata.name.rpartition("-")[0].rpartition("-")[2] + pod.metadata.name[-2:]
        for pod in namespace.pods()
        if "prepare" not in pod.metadata.name
    )
    assert names == ["step-1", "step-2", "verifier-1", "verifier-2"]


def test_suspended_trial_goes_on_where_it_stopped(namespace: Namespace) -> None:
    namespace.create(
        namespace.files({"a": {"solution/solve.sh": COUNT}, "b": {"solution/solve.sh": "true\n"}}, tests__test_sh=ONCE)
    )
    namespace.running_pod("-step-1")
    namespace.patch({"spec": {"suspend": True}})
    namespace.wait(lambda status: status.get("phase") == "Suspended")
    time.sleep(3)
    assert not [pod for pod in namespace.pods() if "verifier" in pod.metadata.name]
    kubectl("-n", namespace.name, "wait", "--for=condition=Suspended", "mst/trial", "--timeout=5s")
    namespace.patch({"spec": {"suspend": False}})
    status = namespace.finish()
    assert (status["phase"], status["rewards"]) == ("Succeeded", {"reward": 1})
    assert status["suspendedSeconds"] >= 3


def test_deletion_in_the_middle_of_a_step_leaves_nothing(namespace: Namespace) -> None:
    namespace.create(namespace.files({"a": {"solution/solve.sh": "sleep 1000\n"}}, tests__test_sh=PASS))
    namespace.running_pod("-step-1")
    kubectl("-n", namespace.name, "delete", "mst", "trial")
    core = client.CoreV1Api()

    def left() -> list[str]:
        objects = [
            *core.list_namespaced_pod(namespace.name).items,
            *core.list_namespaced_persistent_volume_claim(namespace.name).items,
        ]
        objects += [
            item
            for item in core.list_namespaced_config_map(namespace.name).items
            if item.metadata.name != "kube-root-ca.crt"
        ]
        return [item.metadata.name for item in objects]

    until(lambda: not left(), 90, "that nothing is left")


def test_upgrade_leaves_suspended_and_finished_trials_alone(namespace: Namespace) -> None:
    files = namespace.files({"a": {}}, tests__test_sh=PASS)
    namespace.create(files, agent="nop", name="finished")
    namespace.create(files, agent="nop", name="suspended", suspend=True)
    namespace.finish(name="finished")
    namespace.wait(lambda status: status.get("phase") == "Suspended", name="suspended")
    before = [namespace.get(name)["metadata"]["resourceVersion"] for name in ("finished", "suspended")]
    install("podAnnotations.upgrade=now")
    time.sleep(5)
    assert [namespace.get(name)["metadata"]["resourceVersion"] for name in ("finished", "suspended")] == before
    assert "finalizers" not in namespace.get("suspended")["metadata"]


def test_deadline_of_the_trial_ends_its_pod(namespace: Namespace) -> None:
    namespace.create(
        namespace.files({"a": {"solution/solve.sh": "sleep 1000\n"}}, tests__test_sh=PASS), activeDeadlineSeconds=10
    )
    status = namespace.finish()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    until(lambda: not [pod for pod in namespace.pods() if pod.status.phase == "Running"], 60, "that no pod runs")


def test_finished_trial_goes_away_when_its_time_is_over(namespace: Namespace) -> None:
    namespace.create(namespace.files({"a": {}}, tests__test_sh=PASS), agent="nop", ttlSecondsAfterFinished=0)

    def gone() -> bool:
        try:
            namespace.get()
        except client.ApiException as error:
            return error.status == 404
        return False

    until(gone, 120, "that the trial is deleted")


def test_retained_volume_outlives_its_trial(namespace: Namespace) -> None:
    namespace.create(namespace.files({"a": {}}, tests__test_sh=PASS), agent="nop")
    claim = namespace.finish()["workspace"]["claimName"]
    namespace.patch({"spec": {"workspace": {"retain": True}}})
    core = client.CoreV1Api()
    read = lambda: core.read_namespaced_persistent_volume_claim(claim, namespace.name).metadata  # noqa: E731
    until(lambda: not read().owner_references, 90, "that the claim has no owner")
    kubectl("-n", namespace.name, "delete", "mst", "trial")
    until(lambda: not namespace.pods(), 60, "that the pods are gone")
    time.sleep(2)
    assert read().deletion_timestamp is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"environment": {"image": "localhost/no/such:image"}}, "localhost/no/such:image"),
        ({"environment": {"image": "Not A Name"}}, "InvalidImageName"),
        ({"podTemplate": {"nodeSelector": {"no": "node"}}}, "affinity/selector"),
        ({"workspace": {"storageClassName": "no-such-class"}}, "unbound"),
        (
            {
                "agent": {
                    "name": "nop",
                    "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "no-secret", "key": "k"}}}],
                }
            },
            "no-secret",
        ),
        (
            {"verifier": {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "no-map", "key": "k"}}}]}},
            "no-map",
        ),
    ],
    ids=["no-image", "bad-image-name", "unschedulable", "unbound-claim", "no-secret", "no-config-map"],
)
def test_pod_that_never_starts_ends_the_trial_with_kubernetes_words(
    namespace: Namespace, change: dict, words: str
) -> None:
    namespace.create(
        namespace.files({"a": {}}, tests__test_sh=PASS), **{"agent": "nop", "startDeadlineSeconds": 60, **change}
    )
    # Long before the deadline the status says what the pod waits for.
    namespace.wait(lambda status: words in status.get("message", ""))
    status = namespace.finish()
    assert (status["phase"], status["reason"], status["error"]["type"]) == ("Failed", "PodStartFailed", "PodStartError")
    assert words in status["error"]["message"]
    pending = lambda pod: pod.status.phase == "Pending" and not pod.metadata.deletion_timestamp  # noqa: E731
    until(lambda: not list(filter(pending, namespace.pods())), 90, "that no pod waits any more")


def test_missing_bundle_is_named(namespace: Namespace) -> None:
    namespace.create(agent="nop", startDeadlineSeconds=3, task={"configMap": {"name": "no-such-bundle"}})
    status = namespace.finish(120)
    assert (status["reason"], "no-such-bundle" in status["message"]) == ("TaskUnavailable", True)


def test_all_problems_of_a_task_are_told_before_any_pod(namespace: Namespace) -> None:
    toml = '[environment]\ndocker_image = 7\n[agent]\ntimeout_sec = "soon"\n[[steps]]\nname = "a/b"\n'
    namespace.create({"task.toml": toml}, agent="nop")
    status = namespace.finish(120)
    condition = next(item for item in status["conditions"] if item["type"] == "TaskValid")
    assert (status["phase"], condition["status"], condition["reason"]) == ("Failed", "False", "TaskInvalid")
    for key in ("environment.docker_image", "agent.timeout_sec", "steps[0].name"):
        assert f"task.toml: {key}: found" in condition["message"]
    assert namespace.pods() == []


def test_spec_is_fixed_once_the_trial_started(namespace: Namespace) -> None:
    namespace.create(namespace.files({"a": {}}, tests__test_sh=PASS), agent="nop")
    namespace.wait(lambda status: status.get("startTime"))

    def patch(spec: dict, **options: bool) -> str:
        words = ["patch", "mst", "trial", "--type=merge", "-p", json.dumps({"spec": spec})]
        return kubectl("-n", namespace.name, *words, **options)

    for change in (
        {"agent": {"name": "oracle"}},
        {"backoffLimit": 3},
        {"task": {"inline": {"files": {"task.toml": "x"}}}},
    ):
        answer = patch(change, check=False)
        assert "create a new trial" in answer
    patch({"ttlSecondsAfterFinished": 600})


def test_pod_that_somebody_deletes_is_a_fault_and_the_trial_starts_again(namespace: Namespace) -> None:
    solve = "[ -e /app/x ] && exit 0; sleep 5; touch /app/x\n"
    namespace.create(
        namespace.files({"a": {"solution/solve.sh": solve}}, tests__test_sh=reward_if("[ -e /app/x ]")), backoffLimit=1
    )
    name = namespace.running_pod("-step-1")
    kubectl("-n", namespace.name, "delete", "pod", name, "--wait=false")
    status = namespace.finish(200)
    assert (status["phase"], status["attempt"], status["rewards"]) == ("Succeeded", 2, {"reward": 1})
    assert status["previousAttempts"][0]["error"]["type"] == "InfrastructureError"
    claims = client.CoreV1Api().list_namespaced_persistent_volume_claim(namespace.name).items
    assert [claim.metadata.name for claim in claims if not claim.metadata.deletion_timestamp] == [
        status["workspace"]["claimName"]
    ]


def test_quota_is_waited_for(namespace: Namespace) -> None:
    core = client.CoreV1Api()
    core.create_namespaced_resource_quota(
        namespace.name, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    )
    until(lambda: core.read_namespaced_resource_quota("none", namespace.name).status.hard, 90, "the quota")
    namespace.create(namespace.files({"a": {}}, tests__test_sh=PASS), agent="nop")
    status = namespace.wait(lambda status: status.get("reason") == "WaitingForAdmission")
    assert "exceeded quota" in status["message"]
    core.delete_namespaced_resource_quota("none", namespace.name)
    assert namespace.finish()["phase"] == "Succeeded"


def test_long_names_of_trials_and_steps(namespace: Namespace) -> None:
    name = "n" * 240 + ".dots.and-more"
    step = "ü" * 100
    namespace.create(namespace.files({step: {}}, tests__test_sh=PASS), agent="nop", name=name[:253])
    status = namespace.finish(name=name[:253])
    assert (status["phase"], status["steps"][0]["name"]) == ("Succeeded", step)
    pod = next(pod for pod in namespace.pods() if pod.metadata.name.endswith("-step-1"))
    assert len(pod.metadata.name) <= 63 and pod.metadata.annotations["multistep.dev/step-name"] == step


def test_operator_s_rights_are_few() -> None:
    account = f"--as=system:serviceaccount:{OPERATOR_NAMESPACE}:multistep-operator"
    for verb, resource in [
        ("get", "secrets"),
        ("list", "secrets"),
        ("update", "multisteptrials"),
        ("list", "configmaps"),
        ("create", "clusterroles"),
        ("patch", "pods"),
    ]:
        assert kubectl("auth", "can-i", verb, resource, "-A", account, check=False).strip().endswith("no"), (
            verb,
            resource,
        )
    assert (
        kubectl("auth", "can-i", "create", "pods", "--subresource=exec", "-A", account, check=False)
        .strip()
        .endswith("no")
    )
    pod = json.loads(kubectl("-n", OPERATOR_NAMESPACE, "get", "deployment", "multistep-operator", "-o", "json"))[
        "spec"
    ]["template"]["spec"]
    security = pod["containers"][0]["securityContext"]
    assert security["readOnlyRootFilesystem"] and pod["securityContext"]["runAsNonRoot"]


@pytest.mark.timeout(1600)
def test_hundred_steps(namespace: Namespace) -> None:
    steps = {f"round {number:03}": {} for number in range(1, 101)}
    files = namespace.files(
        steps, tests__test_sh='echo "{\\"reward\\": 1, \\"chips\\": -3.5}" > /logs/verifier/reward.json\n'
    )
    namespace.create(files, agent="nop", workspace={"size": "64Mi", "persistence": "Workdir"})
    status = namespace.finish(1500)
    assert (status["phase"], status["gradedSteps"], status["rewards"]) == (
        "Succeeded",
        100,
        {"reward": 1, "chips": -3.5},
    )
    assert len(json.dumps(status)) < 100_000
