import json

import pytest
from support.world import SETTINGS, World, prepare_message, step_message, task_files, verifier_message

from multistep.api.status import MultiStepTrialStatus
from multistep.engine.decide import decide
from multistep.engine.rejection import reject
from multistep.engine.types import Observed, Rejection, TaskInvalid, TaskUnavailable
from multistep.task import Problem


def test_trial_walks_through_its_steps_and_takes_the_mean() -> None:
    world = World()
    world.prepare()
    for number, reward in enumerate([1, 0, 0.5], start=1):
        assert world.status["step"] == f"{number}/3"
        world.run_step(number, reward)
    assert (world.status["phase"], world.status["reason"]) == ("Succeeded", "AllStepsRan")
    assert world.status["rewards"] == {"reward": 0.5}
    assert (world.status["reward"], world.status["gradedSteps"], world.status["rewardValid"]) == ("0.5", 3, True)
    assert [world.condition(kind) for kind in ("Complete", "Failed", "Reconciling", "TaskValid")] == [
        "True",
        None,
        "False",
        "True",
    ]
    assert [step["phase"] for step in world.status["steps"]] == ["Completed"] * 3
    assert world.status["steps"][0]["stages"][0]["durationSeconds"] == 2


def test_step_costs_two_writes_of_the_status() -> None:
    world = World(task_files(4))
    world.prepare()
    before = world.writes
    for number in (1, 2, 3):
        world.run_step(number)
    assert world.writes - before == 6


def test_next_pod_is_created_when_the_container_ended_whatever_the_phase() -> None:
    world = World()
    world.prepare()
    world.finish("-step-1", step_message(), phase="Running")
    world.wake()
    assert world.pod("-verifier-1")


def test_read_write_once_pod_waits_for_the_phase() -> None:
    world = World(workspace={"accessModes": ["ReadWriteOncePod"]})
    world.wake()
    world.finish("prepare", prepare_message(), phase="Running")
    world.wake()
    assert len(world.pods) == 1
    world.finish("prepare", prepare_message(), phase="Succeeded")
    world.wake()
    assert world.pod("-step-1")


def test_min_reward_stops_early_and_is_an_answer() -> None:
    world = World(task_files(step_config={1: "min_reward = 0.5"}))
    world.prepare()
    world.run_step(1, 0.25)
    assert (world.status["phase"], world.status["reason"]) == ("Stopped", "MinRewardNotMet")
    assert world.status["earlyStop"] == {
        "step": "step 1",
        "message": "min_reward is not met: reward is 0.25, min_reward 0.5",
        "thresholds": {"reward": 0.5},
        "observed": {"reward": 0.25},
    }
    assert [step["phase"] for step in world.status["steps"]] == ["Completed", "Skipped", "Skipped"]
    assert (world.condition("Complete"), world.status["gradedSteps"], world.status["totalSteps"]) == ("True", 1, 3)
    assert len(world.pods) == 3


def test_min_reward_names_missing_keys() -> None:
    world = World(task_files(step_config={1: "min_reward = { a = 0.0, b = 1.0 }"}))
    world.prepare()
    world.run_step(1, {"b": 1})
    assert world.status["earlyStop"]["missing"] == ["a"]
    assert world.status["earlyStop"]["observed"] == {"b": 1}


def test_final_takes_the_last_step() -> None:
    world = World(task_files(2, config='multi_step_reward_strategy = "final"'))
    world.prepare()
    world.run_step(1, 1)
    world.run_step(2, {"x": 3})
    assert world.status["rewards"] == {"x": 3}
    assert world.status["reward"] == "x=3"


@pytest.mark.parametrize("error", ["AgentTimeoutError", "NonZeroAgentExitCodeError"])
def test_agent_that_fails_is_graded_all_the_same(error: str) -> None:
    world = World()
    world.prepare()
    world.run_step(1, 0.5, agent_error=error)
    step = world.status["steps"][0]
    assert (step["phase"], step["rewards"], step["error"]["type"]) == ("Completed", {"reward": 0.5}, error)
    assert world.pod("-step-2")


def test_memory_of_the_agent_is_told_apart_from_the_node_s() -> None:
    world = World()
    world.prepare()
    world.finish("-step-1", "", exit_code=137, reason="OOMKilled")
    world.wake()
    assert world.status["steps"][0]["error"]["type"] == "AgentOutOfMemoryError"
    assert world.pod("-verifier-1")


@pytest.mark.parametrize("error", ["SetupError", "HealthcheckError", "UserNotFoundError", "SolutionNotFoundError"])
def test_step_that_never_came_to_its_agent_fails_the_trial(error: str) -> None:
    world = World()
    world.prepare()
    world.run_step(1, 1)
    world.finish("-step-2", step_message(error, output="boom", exit_code=3))
    world.wake()
    assert (world.status["phase"], world.status["error"]["type"]) == ("Failed", error)
    assert "boom" in world.status["error"]["message"]
    assert world.status["error"]["pod"].endswith("-step-2")
    assert (world.status["rewards"], world.status["rewardValid"], world.status.get("reward")) == (
        {"reward": 1.0},
        False,
        None,
    )
    assert [step["phase"] for step in world.status["steps"]] == ["Completed", "Failed", "Skipped"]
    assert [world.condition(kind) for kind in ("Complete", "Failed", "Stalled")] == ["False", "True", "True"]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (verifier_message(None), "RewardFileNotFoundError"),
        (verifier_message(""), "RewardFileEmptyError"),
        (verifier_message("nan"), "VerifierOutputParseError"),
        (verifier_message(error="VerifierTimeoutError"), "VerifierTimeoutError"),
        ("", "VerifierPodError"),
        ("not json", "VerifierPodError"),
        (step_message(), "VerifierPodError"),
    ],
)
def test_verification_without_a_reward_fails_the_trial(message: str, error: str) -> None:
    world = World()
    world.prepare()
    world.start("-step-1")
    world.finish("-step-1", step_message())
    world.wake()
    world.finish("-verifier-1", message)
    world.wake()
    assert (world.status["phase"], world.status["error"]["type"]) == ("Failed", error)
    assert "rewards" not in world.status and world.status["rewardValid"] is False


def test_agent_s_error_is_kept_where_the_verifier_fails_too() -> None:
    world = World()
    world.prepare()
    world.run_step(1, None, agent_error="AgentTimeoutError")
    assert world.status["steps"][0]["error"]["type"] == "AgentTimeoutError"
    assert world.status["error"]["type"] == "RewardFileNotFoundError"


def test_reward_in_a_step_pod_s_report_counts_for_nothing() -> None:
    world = World()
    world.prepare()
    forged = json.loads(verifier_message(1))
    world.finish("-step-1", json.dumps({**forged, "role": "step"}))
    world.wake()
    assert "rewards" not in world.status["steps"][0]
    world.finish("-verifier-1", verifier_message(0))
    world.wake()
    assert world.status["steps"][0]["rewards"] == {"reward": 0}


def test_pod_that_does_not_start_fails_with_the_kubelet_s_words() -> None:
    world = World(startDeadlineSeconds=60)
    world.wake()
    pod = world.pod("prepare")
    pod["spec"]["nodeName"] = "node-1"
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nope:1"'}
    pod["status"] = {"phase": "Pending", "containerStatuses": [{"name": "seed", "state": {"waiting": waiting}}]}
    world.wake()
    assert world.status["phase"] == "Preparing"
    assert world.wake_at is not None
    world.sleep(60)
    world.wake()
    assert (world.status["phase"], world.status["error"]["type"]) == ("Failed", "PodStartError")
    assert 'ImagePullBackOff: Back-off pulling image "nope:1"' in world.status["error"]["message"]
    assert world.pods == {}


def test_eviction_is_never_graded_and_uses_up_the_backoff_limit() -> None:
    world = World(backoffLimit=1)
    world.prepare()
    world.run_step(1, 1)
    world.evict("-step-2")
    world.wake()
    assert (world.status["attempt"], world.status["phase"]) == (2, "Preparing")
    assert world.status["previousAttempts"][0]["error"]["type"] == "InfrastructureError"
    assert [name.split("-", 2)[2] for name in world.pods] == ["retry-1-prepare"]
    assert [step["phase"] for step in world.status["steps"]] == ["Pending"] * 3
    world.finish("prepare", prepare_message())
    world.wake()
    world.evict("-step-1")
    world.wake()
    assert (world.status["phase"], world.status["error"]["type"]) == ("Failed", "InfrastructureError")
    assert world.status["rewardValid"] is False


def test_pod_that_vanished_is_never_created_again() -> None:
    world = World()
    world.prepare()
    world.start("-step-1")
    name = world.running()[0]
    world.pods.clear()
    world.wake()
    world.wake()
    assert world.status["error"]["type"] == "InfrastructureError"
    assert world.created[name] == 1


def test_suspended_trial_finishes_its_pod_and_starts_no_other() -> None:
    world = World()
    world.prepare()
    world.start("-step-1")
    world.spec.suspend = True
    world.generation += 1
    world.wake()
    assert (world.status["phase"], world.condition("Suspended")) == ("Running", None)
    world.finish("-step-1", step_message("AgentTimeoutError"))
    world.wake()
    assert (world.status["phase"], world.condition("Suspended")) == ("Suspended", "True")
    assert len(world.pods) == 2
    world.sleep(100)
    world.spec.suspend = False
    world.generation += 1
    world.wake()
    assert (world.condition("Suspended"), world.status["suspendedSeconds"]) == ("False", 100)
    world.finish("-verifier-1", verifier_message(1))
    world.wake()
    assert world.status["steps"][0]["error"]["type"] == "AgentTimeoutError"
    assert world.pod("-step-2")


def test_trial_that_is_created_suspended_makes_nothing() -> None:
    world = World(suspend=True)
    world.wake()
    assert (world.status["phase"], world.pods, world.objects) == ("Suspended", {}, {})
    assert "startTime" not in world.status
    world.spec.suspend = False
    world.wake()
    assert world.status["phase"] == "Preparing"


def test_deadline_leaves_out_suspended_time_and_ends_the_running_pod() -> None:
    world = World(activeDeadlineSeconds=100)
    world.prepare()
    world.start("-step-1")
    world.sleep(99)
    world.wake()
    assert world.status["phase"] == "Running"
    world.sleep(1)
    world.wake()
    assert (world.status["phase"], world.status["reason"]) == ("Failed", "DeadlineExceeded")
    assert not any(name.endswith("-step-1") for name in world.pods)


def test_finished_trial_is_deleted_when_its_time_to_live_is_over() -> None:
    world = World(task_files(1), ttlSecondsAfterFinished=30)
    world.prepare()
    world.run_step(1)
    world.wake()
    assert not world.deleted
    world.sleep(30)
    world.wake()
    assert world.deleted


def test_finished_trial_never_changes_again() -> None:
    world = World(task_files(1))
    world.prepare()
    world.run_step(1, 0)
    before = json.dumps(world.status)
    for pod in world.pods.values():
        pod["status"] = {"phase": "Failed", "reason": "Evicted"}
    world.sleep(1e6)
    world.wake()
    world.pods.clear()
    world.wake()
    assert json.dumps(world.status) == before


def test_all_problems_of_a_task_are_in_its_condition() -> None:
    world = World()
    problems = tuple(Problem("task.toml", f"key{number}", None, "it is wrong") for number in range(3))
    decision = decide(world.trial(), Observed(TaskInvalid(problems)), world.now, SETTINGS)
    status = decision.status
    condition = next(c for c in status.conditions if c.type == "TaskValid")
    assert (status.phase, condition.status, condition.reason) == ("Failed", "False", "TaskInvalid")
    assert all(f"key{number}" in condition.message for number in range(3))
    assert decision.actions == ()


def test_missing_source_is_waited_for_and_then_named() -> None:
    world = World(startDeadlineSeconds=30)
    observed = Observed(TaskUnavailable("ConfigMap nope does not exist in namespace default"))
    first = decide(world.trial(), observed, world.now, SETTINGS)
    assert (first.status.phase, first.status.reason) == ("Pending", "TaskUnavailable")
    world.status = first.status.to_json()
    world.sleep(31)
    second = decide(world.trial(), observed, world.now, SETTINGS)
    assert second.status.phase == "Failed"
    assert "ConfigMap nope" in (second.status.message or "")


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ('[environment]\ndocker_image = "i"\nos = "windows"', "environment.os"),
        ('[environment]\ndocker_image = "i"\nnetwork_mode = "no-network"', "network_mode"),
        ('artifacts = [{ source = "/x", service = "db" }]', "artifacts[0].service"),
        ("[environment]\ncpus = 1", "environment.docker_image"),
        ('[environment]\ndocker_image = "i"\n[environment.env]\nA = "${NOBODY}"', "environment.env.A"),
        ("[[verifier.collect]]\ncommand = 'x'\nservice = 'db'", "verifier.collect[0].service"),
    ],
)
def test_what_cannot_be_run_is_said_before_any_pod(config: str, key: str) -> None:
    world = World(task_files(1, config=config))
    world.wake()
    assert (world.status["phase"], world.status["reason"], world.pods) == ("Failed", "TaskInvalid", {})
    assert key in world.status["message"]


def test_refused_pod_waits_for_a_quota_and_fails_at_the_deadline() -> None:
    world = World(startDeadlineSeconds=60)
    refused = Rejection("Pod", "p", "exceeded quota: pods", permanent=False)
    decision = reject(world.trial(), world.observed(), refused, world.now, SETTINGS)
    assert (decision.status.phase, decision.status.reason) == ("Pending", "WaitingForAdmission")
    world.status = decision.status.to_json()
    world.sleep(61)
    decision = reject(world.trial(), world.observed(), refused, world.now, SETTINGS)
    assert decision.status.phase == "Failed"
    assert "exceeded quota" in (decision.status.message or "")


def test_invalid_pod_fails_at_once_with_the_api_server_s_words() -> None:
    world = World()
    refused = Rejection("Pod", "p", "spec.affinity: Invalid value", permanent=True)
    status = reject(world.trial(), world.observed(), refused, world.now, SETTINGS).status
    assert (status.phase, status.reason) == ("Failed", "PodRejected")
    assert "spec.affinity: Invalid value" in (status.message or "")


def test_hundred_steps_keep_the_status_small() -> None:
    world = World(task_files(100))
    world.prepare()
    for number in range(1, 101):
        world.run_step(number, {"reward": 1, "score": 0.123456789})
    assert world.status["phase"] == "Succeeded"
    assert len(json.dumps(world.status)) < 100_000
    MultiStepTrialStatus.model_validate(world.status)


def test_decide_is_a_function() -> None:
    world = World()
    world.prepare()
    assert world.decide() == world.decide()
