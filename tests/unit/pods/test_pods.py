import re

import pytest
from support.world import World, task_files

from multistep.api.spec import MultiStepTrialSpec
from multistep.api.status import ContainerUser, WorkspaceStatus
from multistep.pods.context import TrialContext
from multistep.pods.diagnosis import start_trouble
from multistep.pods.environment import literal, resolve
from multistep.pods.names import Role, TrialIdentity, claim_name, label_value, labels, pod_name, snapshot_name
from multistep.pods.outcome import observe_pod
from multistep.pods.prepare import prepare_pod
from multistep.pods.step import step_pod
from multistep.pods.verifier import verifier_pod
from multistep.task import load_task, tree_from_inline

NAMES = ["a", "x" * 253, "with.dots.in-it", "a" * 40 + ".", "0"]


@pytest.mark.parametrize("name", NAMES)
def test_names_and_labels_are_valid_whatever_the_trial_is_called(name: str) -> None:
    trial = TrialIdentity("ns", name, "uid-1")
    made = [
        pod_name(trial, 11, Role.VERIFIER, 500),
        pod_name(trial, 1, Role.PREPARE),
        claim_name(trial, 2),
        snapshot_name(trial),
    ]
    for text in made:
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", text) and len(text) <= 63, text
    for value in labels(trial, 1, Role.STEP, 3).values():
        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", value) and len(value) <= 63


def test_names_of_different_trials_and_attempts_differ() -> None:
    first, again = TrialIdentity("ns", "x" * 253, "1"), TrialIdentity("ns", "x" * 253, "2")
    names = {pod_name(trial, attempt, Role.STEP, 1) for trial in (first, again) for attempt in (1, 2)}
    assert len(names) == 4


@pytest.mark.parametrize("text", ["Step 1 (final)", "ü" * 100, "-a-", "a" * 64, "ok.value_1"])
def test_label_values_are_valid(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", label_value(text)) and len(label_value(text)) <= 63


def _context(config: str = "", user: ContainerUser | None = None, **spec) -> TrialContext:
    loaded = load_task(tree_from_inline(task_files(2, config=config), {}))
    assert loaded.task is not None, loaded.problems
    document = {"agent": {"name": "oracle"}, "task": {"inline": {"files": {"a": "b"}}}, **spec}
    workspace = WorkspaceStatus(
        claim_name="claim",
        workdir="/app",
        directories=["app", "etc"],
        user=user or ContainerUser(uid=0, gid=0),
        node_name="node-7",
    )
    return TrialContext(
        TrialIdentity("ns", "t", "u"),
        MultiStepTrialSpec.model_validate(document),
        loaded.task,
        workspace,
        1,
        "operator:1",
    )


def test_step_pod_mounts_only_what_its_step_needs() -> None:
    mounts = {mount["mountPath"]: mount for mount in step_pod(_context(), 2)["spec"]["containers"][0]["volumeMounts"]}
    assert "/logs/verifier" not in mounts and not [path for path in mounts if "tests" in path]
    for mount in mounts.values():
        assert mount["subPath"] and "steps/step 1" not in mount["subPath"]
    assert mounts["/.multistep/solution"]["subPath"] == "task/steps/step 2/solution"
    nop = step_pod(_context(agent={"name": "nop"}), 2)["spec"]["containers"][0]["volumeMounts"]
    assert not [mount for mount in nop if "solution" in mount["mountPath"]]


def test_pods_have_no_token_and_never_restart() -> None:
    context = _context()
    for pod in (prepare_pod(context), step_pod(context, 1), verifier_pod(context, 1)):
        spec = pod["spec"]
        assert (spec["automountServiceAccountToken"], spec["restartPolicy"], spec["enableServiceLinks"]) == (
            False,
            "Never",
            False,
        )
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            assert container["terminationMessagePolicy"] in ("File", "FallbackToLogsOnError")


def test_secrets_of_the_agent_and_of_the_verifier_stay_apart() -> None:
    secret = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    context = _context(
        '[verifier.env]\nJUDGE = "${JUDGE}"',
        env=[{"name": "JUDGE", **secret}],
        agent={"name": "oracle", "env": [{"name": "KEY", **secret}]},
    )
    names = lambda pod: {entry["name"] for entry in pod["spec"]["containers"][0]["env"]}  # noqa: E731
    assert names(step_pod(context, 1)) == {"KEY"}
    assert names(verifier_pod(context, 1)) == {"JUDGE"}
    (judge,) = verifier_pod(context, 1)["spec"]["containers"][0]["env"]
    assert judge == {"name": "JUDGE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def test_nothing_of_a_user_is_expanded_by_kubernetes() -> None:
    context = _context(
        agent={
            "name": "command",
            "command": ["sh", "-c", "echo $(HOME) $$ $x"],
            "env": [{"name": "A", "value": "$(B)"}],
        }
    )
    container = step_pod(context, 1)["spec"]["containers"][0]
    assert container["args"][-1] == "echo $$(HOME) $$$$ $$x"
    assert container["env"] == [{"name": "A", "value": "$$(B)"}]
    assert literal("a") == "a"


def test_user_is_the_task_s_else_the_image_s() -> None:
    def user(pod) -> str:
        return next(word for word in pod["spec"]["containers"][0]["args"] if "user=" in word).split("=", 1)[1]

    image = ContainerUser(uid=1000, gid=1000, passwd_gid=1000)
    other = ContainerUser(uid=1000, gid=5, passwd_gid=1000)
    assert user(step_pod(_context(), 1)) == ""
    assert user(step_pod(_context(user=image), 1)) == "1000"
    assert user(step_pod(_context(user=other), 1)) == "1000:5"
    assert user(step_pod(_context('[agent]\nuser = "bob"', user=image), 1)) == "bob"
    assert user(verifier_pod(_context('[agent]\nuser = "bob"', user=image), 1)) == "1000"
    assert user(step_pod(_context("[agent]\nuser = 0", user=image), 1)) == "0"


def test_pod_has_a_deadline_only_where_all_its_stages_have() -> None:
    assert "activeDeadlineSeconds" not in step_pod(_context(), 1)["spec"]
    assert step_pod(_context("[agent]\ntimeout_sec = 100"), 1)["spec"]["activeDeadlineSeconds"] == 600 + 100 + 10 + 60
    assert verifier_pod(_context(), 1)["spec"]["activeDeadlineSeconds"] == 600 + 600 + 10 + 60


def test_environment_s_healthcheck_runs_once() -> None:
    context = _context('[environment]\ndocker_image = "i"\n[environment.healthcheck]\ncommand = "true"')
    assert any("healthcheck-environment" in word for word in step_pod(context, 1)["spec"]["containers"][0]["args"])
    assert not any("healthcheck-environment" in word for word in step_pod(context, 2)["spec"]["containers"][0]["args"])


def test_pod_template_is_followed_and_the_operator_s_own_wins() -> None:
    template = {
        "labels": {"team": "evals"},
        "annotations": {"a": "b"},
        "nodeSelector": {"pool": "x"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
        "imagePullSecrets": [{"name": "pull"}],
        "runtimeClassName": "gvisor",
        "priorityClassName": "low",
        "serviceAccountName": "account",
        "securityContext": {"fsGroup": 5},
        "containerSecurityContext": {"allowPrivilegeEscalation": False, "runAsUser": 99},
    }
    pod = step_pod(_context(podTemplate=template), 1)
    assert pod["metadata"]["labels"]["team"] == "evals" and pod["metadata"]["labels"]["multistep.dev/role"] == "step"
    spec = pod["spec"]
    for key in (
        "nodeSelector",
        "tolerations",
        "imagePullSecrets",
        "runtimeClassName",
        "priorityClassName",
        "serviceAccountName",
    ):
        assert spec[key] == template[key]
    affinity = spec["affinity"]["nodeAffinity"]
    assert affinity["requiredDuringSchedulingIgnoredDuringExecution"] == {"nodeSelectorTerms": []}
    assert affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["preference"]["matchFields"][0]["values"] == [
        "node-7"
    ]
    assert spec["securityContext"]["fsGroup"] == 5
    security = spec["containers"][0]["securityContext"]
    assert (security["allowPrivilegeEscalation"], security["runAsUser"]) == (False, 0)


def test_setuid_works_by_default() -> None:
    assert "allowPrivilegeEscalation" not in step_pod(_context(), 1)["spec"]["containers"][0]["securityContext"]


def test_resources_are_requested_and_the_limit() -> None:
    config = '[environment]\ndocker_image = "i"\ncpus = 0.5\nmemory_mb = 512\nstorage_mb = 100'
    resources = step_pod(_context(config), 1)["spec"]["containers"][0]["resources"]
    assert (
        resources["limits"] == resources["requests"] == {"cpu": "0.5", "memory": "512Mi", "ephemeral-storage": "100Mi"}
    )


def test_default_of_a_reference_counts_where_nobody_provides_it() -> None:
    assert resolve({"A": "${X:-d}", "B": "${Y}"}, []) == [{"name": "A", "value": "d"}]


def test_trouble_is_told_with_the_words_of_kubernetes() -> None:
    world = World()
    world.wake()
    pod = world.pod("prepare")
    pod["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    ]
    observed = observe_pod(pod)
    assert observed is not None
    assert start_trouble(observed) == "the pod cannot be scheduled: Unschedulable: 0/1 nodes are available"
