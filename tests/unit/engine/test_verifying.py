"""Retries of verifiers, verifiers in step pods, setup pods, and grading again."""

import json

import pytest
from support.world import World, step_message, task_files, verifier_message

from multistep.engine.types import RegradeRequest
from multistep.pods.network_engine import NetworkEngine

IMAGE = '[environment]\ndocker_image = "busybox:1"\n'


def at_verifier(world: World, number: int = 1) -> World:
    world.prepare()
    for index in range(1, number):
        world.run_step(index)
    world.start(f"-step-{number}")
    world.finish(f"-step-{number}", step_message())
    world.wake()
    return world


def step(world: World, number: int = 1) -> dict:
    return world.status["steps"][number - 1]


def test_verifier_that_timed_out_runs_again_without_the_agent() -> None:
    world = at_verifier(World(task_files(1), verifier={"retries": 2}))
    world.finish("-verifier-1", verifier_message(error="VerifierTimeoutError"), phase="Succeeded")
    world.wake()
    assert world.status["phase"] == "Running" and world.status["reason"] == "VerifierRetrying"
    world.wake()
    world.finish("-verifier-1-2", verifier_message(0.5))
    world.wake()
    assert world.status["phase"] == "Succeeded" and step(world)["rewards"] == {"reward": 0.5}
    first = step(world)["previousVerifications"][0]
    assert first["podName"].endswith("-verifier-1") and first["error"]["type"] == "VerifierTimeoutError"
    assert world.created[world.pod("-step-1")["metadata"]["name"]] == 1
    assert "error" not in step(world)


@pytest.mark.parametrize("error", ["AddTestsDirError", "CarryError"])
def test_other_errors_of_a_verifier_are_not_tried_again(error: str) -> None:
    world = at_verifier(World(task_files(1), verifier={"retries": 2}))
    world.finish("-verifier-1", verifier_message(error=error))
    world.wake()
    assert world.status["phase"] == "Failed" and step(world)["error"]["type"] == error


def test_missing_reward_is_not_tried_again() -> None:
    world = at_verifier(World(task_files(1), verifier={"retries": 2}))
    world.finish("-verifier-1", verifier_message(None))
    world.wake()
    assert step(world)["error"]["type"] == "RewardFileNotFoundError" and world.status["phase"] == "Failed"


def test_tries_end() -> None:
    world = at_verifier(World(task_files(1), verifier={"retries": 1}))
    world.finish("-verifier-1", verifier_message(error="VerifierTimeoutError"), phase="Succeeded")
    world.wake()
    world.wake()
    world.finish("-verifier-1-2", verifier_message(error="VerifierTimeoutError"))
    world.wake()
    assert world.status["phase"] == "Failed" and len(step(world)["previousVerifications"]) == 1


def test_evicted_verifier_runs_again_and_the_agent_does_not() -> None:
    world = at_verifier(World(task_files(1), verifier={"retries": 1}, backoffLimit=3))
    world.evict("-verifier-1")
    world.wake()
    assert world.status.get("attempt", 1) == 1
    world.wake()
    world.finish("-verifier-1-2", verifier_message(1))
    world.wake()
    assert world.status["phase"] == "Succeeded" and sum(world.agent_runs.values()) == 1


def test_next_try_waits_until_nothing_of_the_one_before_runs() -> None:
    world = at_verifier(World(task_files(1), verifier={"retries": 1}))
    pod = world.pod("-verifier-1")
    world.start("-verifier-1")
    pod["metadata"]["deletionTimestamp"] = "2026-12-01T10:00:00Z"
    for _ in range(2):
        decision = world.decide()
        world.write(decision)
        assert decision.creations == ()
    del world.pods[pod["metadata"]["name"]]
    world.wake()
    assert world.pod("-verifier-1-2")


def test_next_try_does_not_wait_for_ever() -> None:
    world = at_verifier(World(task_files(1), verifier={"retries": 1}))
    pod = world.pod("-verifier-1")
    world.start("-verifier-1")
    pod["metadata"]["deletionTimestamp"] = "2026-12-01T10:00:00Z"
    world.write(world.decide())
    world.sleep(700)
    world.write(world.decide())
    assert world.status["phase"] == "Failed" and "does not answer" in world.status["error"]["message"]


def containers(step_report: str, verifier_report: str) -> str:
    return json.dumps({"containers": {"main": step_report, "verifier": verifier_report}})


def test_verifier_in_the_step_pod_is_read_from_its_own_container() -> None:
    world = World(task_files(2), verifier={"placement": "StepPod"})
    world.prepare()
    for number in (1, 2):
        world.start(f"-step-{number}")
        forged = json.loads(step_message())
        forged["reward"] = json.loads(verifier_message(1))["reward"]
        world.finish(f"-step-{number}", containers(json.dumps(forged), verifier_message(0.25)))
        world.wake()
    assert world.status["phase"] == "Succeeded" and world.status["rewards"] == {"reward": 0.25}
    assert step(world)["verifierPodName"] == step(world)["podName"]
    assert not any("verifier" in name for name in world.pods)


@pytest.mark.parametrize(
    ("error", "phase"), [("AgentTimeoutError", "Succeeded"), ("SetupError", "Failed"), (None, "Succeeded")]
)
def test_step_pod_s_own_error_decides_whether_its_verifier_counts(error: str | None, phase: str) -> None:
    world = World(task_files(1), verifier={"placement": "StepPod"})
    world.prepare()
    world.finish("-step-1", containers(step_message(error=error), verifier_message(1)))
    world.wake()
    assert world.status["phase"] == phase
    assert ("rewards" in step(world)) is (phase == "Succeeded")


def test_tests_that_outlive_the_step_pod_are_a_verifier_s_timeout() -> None:
    world = World(task_files(1), verifier={"placement": "StepPod"})
    world.prepare()
    world.finish("-step-1", containers(step_message(), ""), exit_code=137)
    world.pod("-step-1")["status"].update(phase="Failed", reason="DeadlineExceeded")
    world.wake()
    assert step(world)["error"]["type"] == "VerifierTimeoutError"


SETUP_NETWORK = IMAGE + '[agent]\nnetwork_mode = "no-network"\n'


def world_with_setup(**spec: object) -> World:
    files = {**task_files(1, config=SETUP_NETWORK), "steps/step 1/workdir/setup.sh": "true\n"}
    return World(files, engine=NetworkEngine.NETWORK_POLICY, **spec)


def test_setup_with_another_network_than_the_agent_has_a_pod_of_its_own() -> None:
    world = world_with_setup()
    world.prepare()
    setup = world.pod("-setup-1")
    assert "multistep.dev/network" not in setup["metadata"]["labels"]
    world.finish("-setup-1", step_message())
    world.wake()
    pod = world.pod("-step-1")
    assert pod["metadata"]["labels"]["multistep.dev/network"] == "no-network"
    assert "--part=agent" in pod["spec"]["containers"][0]["args"]
    kinds = [kind for kind, _ in world.objects]
    assert kinds.count("NetworkPolicy") == 1
    world.finish("-step-1", step_message())
    world.wake()
    world.finish("-verifier-1", verifier_message(1))
    world.wake()
    assert world.status["phase"] == "Succeeded" and len(step(world)["stages"]) == 2


def test_setup_that_fails_in_its_own_pod_ends_the_trial() -> None:
    world = world_with_setup()
    world.prepare()
    world.finish("-setup-1", step_message(error="SetupError"))
    world.wake()
    assert world.status["phase"] == "Failed" and step(world)["error"]["type"] == "SetupError"
    assert not any(name.endswith("-step-1") for name in world.pods)


def test_setup_pod_that_is_gone_is_a_fault() -> None:
    world = world_with_setup(backoffLimit=1)
    world.prepare()
    world.pods = {name: pod for name, pod in world.pods.items() if not name.endswith("-setup-1")}
    world.wake()
    assert world.status["attempt"] == 2


def finished(world: World, rewards: tuple[float, ...] = (1, 0)) -> World:
    world.prepare()
    for number, reward in enumerate(rewards, start=1):
        world.run_step(number, reward)
    assert world.status["phase"] in ("Succeeded", "Stopped")
    return world


def test_regrade_runs_the_verifier_alone_and_both_results_stay() -> None:
    world = finished(World(task_files(2)))
    before = {key: value for key, value in world.status.items() if key not in ("regrades", "lastHandledRegrade")}
    world.regrade = RegradeRequest("1")
    world.wake()
    pod = world.pod("-regrade-2-1".removesuffix("-1"))
    mounts = {mount["mountPath"]: mount.get("subPath") for mount in pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts["/logs/verifier"] == "trial/steps/step 2/regrades/1"
    for _ in range(3):
        assert world.wake().creations == ()
    world.finish("-regrade-2", verifier_message(0.5))
    world.wake()
    entry = world.status["regrades"][0]
    assert (entry["step"], entry["rewards"], entry["trialRewards"]) == ("step 2", {"reward": 0.5}, {"reward": 0.75})
    assert {key: world.status[key] for key in before} == before
    assert sum(world.agent_runs.values()) == 2
    assert world.wake().creations == ()
    world.regrade = RegradeRequest("2")
    world.wake()
    assert world.pod("-regrade-2-2")
    assert len(world.status["regrades"]) == 2


@pytest.mark.parametrize(
    ("request_", "spec", "sentence"),
    [
        (RegradeRequest("1", "step 1"), {}, "which is that of step step 2 by now"),
        (RegradeRequest("1", "nonsense"), {}, "no step 'nonsense'"),
        (RegradeRequest("1"), {"verifier": {"disabled": True}}, "never verified"),
    ],
)
def test_regrade_of_another_state_is_refused_with_a_sentence(
    request_: RegradeRequest, spec: dict, sentence: str
) -> None:
    world = World(task_files(2), **spec)
    world.prepare()
    for number in (1, 2):
        world.finish(f"-step-{number}", step_message())
        world.wake()
        if not spec:
            world.finish(f"-verifier-{number}", verifier_message(1))
            world.wake()
    world.regrade = request_
    decision = world.wake()
    assert decision.creations == ()
    error = world.status["regrades"][0]["error"]
    assert error["type"] == "RegradeError" and sentence in error["message"]
    assert world.wake().status.to_json() == world.status


def test_earlier_step_with_a_separate_verifier_can_be_graded_again() -> None:
    world = finished(World(task_files(2, config='[verifier]\nenvironment_mode = "separate"\n' + IMAGE)))
    world.regrade = RegradeRequest("1", "step 1")
    world.wake()
    assert world.pod("-regrade-1")


def test_regrade_of_a_verifier_in_the_step_pod_is_refused() -> None:
    world = World(task_files(1), verifier={"placement": "StepPod"})
    world.prepare()
    world.finish("-step-1", containers(step_message(), verifier_message(1)))
    world.wake()
    world.regrade = RegradeRequest("1")
    world.wake()
    assert "whose processes are gone" in world.status["regrades"][0]["error"]["message"]


def test_failed_verification_can_be_graded_again_and_the_trial_stays_failed() -> None:
    world = at_verifier(World(task_files(1)))
    world.finish("-verifier-1", verifier_message(error="VerifierTimeoutError"))
    world.wake()
    world.regrade = RegradeRequest("1")
    world.wake()
    world.finish("-regrade-1", verifier_message(1))
    world.wake()
    assert world.status["phase"] == "Failed" and world.status["regrades"][0]["trialRewards"] == {"reward": 1.0}


@pytest.mark.parametrize("trouble", ["gone", "evicted", "never starts"])
def test_regrade_ends_whatever_happens_to_its_pod(trouble: str) -> None:
    world = finished(World(task_files(2)))
    world.regrade = RegradeRequest("1")
    world.wake()
    name = world.pod("-regrade-2")["metadata"]["name"]
    if trouble == "gone":
        del world.pods[name]
    elif trouble == "evicted":
        world.evict("-regrade-2")
    else:
        world.sleep(700)
    world.wake()
    assert world.status["regrades"][0]["error"]["type"] == "InfrastructureError"
    assert world.wake().actions == ()


def test_time_to_live_waits_for_a_regrade() -> None:
    world = finished(World(task_files(2), ttlSecondsAfterFinished=100))
    world.regrade = RegradeRequest("1")
    world.wake()
    world.start("-regrade-2")
    world.sleep(200)
    world.wake()
    assert not world.deleted
    world.finish("-regrade-2", verifier_message(1))
    world.wake()
    assert not world.deleted
    world.sleep(100)
    world.wake()
    assert world.deleted


def test_regrade_asked_for_while_the_trial_runs_begins_at_its_end() -> None:
    world = World(task_files(1))
    world.regrade = RegradeRequest("1")
    world.prepare()
    world.run_step(1)
    assert "regrades" not in world.status
    world.wake()
    assert world.pod("-regrade-1")
