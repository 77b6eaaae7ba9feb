"""Faults of containers, nodes and people, and what the engine makes of odd input."""

from dataclasses import replace

from support.world import SETTINGS, World, step_message, task_files, verifier_message

from multistep.engine.decide import decide
from multistep.engine.lifecycle import stall
from multistep.engine.types import Observed
from multistep.task import Problem


def test_container_that_ignores_its_timeout_is_ended_by_kubernetes_and_graded() -> None:
    world = World(task_files(config="[agent]\ntimeout_sec = 5"))
    world.prepare()
    pod = world.pod("-step-1")
    pod["spec"]["nodeName"] = "node-1"
    pod["status"] = {
        "phase": "Failed",
        "reason": "DeadlineExceeded",
        "message": "Pod was active on the node longer than allowed",
    }
    world.wake()
    assert world.status["steps"][0]["error"]["type"] == "AgentTimeoutError"
    assert world.pod("-verifier-1")


def test_verifier_that_ignores_its_timeout_gives_no_reward() -> None:
    world = World()
    world.prepare()
    world.finish("-step-1", step_message())
    world.wake()
    world.finish("-verifier-1", verifier_message(1), phase="Failed")
    world.pod("-verifier-1")["status"]["reason"] = "DeadlineExceeded"
    world.wake()
    assert (world.status["error"]["type"], "rewards" in world.status) == ("VerifierTimeoutError", False)


def test_kubelet_that_does_not_end_a_pod_is_given_up() -> None:
    world = World(task_files(config="[agent]\ntimeout_sec = 5"))
    world.prepare()
    world.start("-step-1")
    world.sleep(600 + 5 + 10 + 60 + 120)
    world.wake()
    assert (world.status["error"]["type"], world.running()) == ("InfrastructureError", ["trial-6955aaaf-prepare"])
    assert "does not answer" in world.status["error"]["message"]


def test_preempted_pod_is_a_fault_of_the_infrastructure() -> None:
    world = World()
    world.prepare()
    world.finish("-step-1", step_message("TerminatedError"), exit_code=143)
    disruption = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "preempting",
    }
    world.pod("-step-1")["status"]["conditions"] = [disruption]
    world.wake()
    assert world.status["error"]["type"] == "InfrastructureError"
    assert "PreemptionByScheduler: preempting" in world.status["error"]["message"]


def test_key_that_nothing_reads_is_a_warning_condition() -> None:
    world = World()
    ready = world.observed().task
    warning = Problem("task.toml", "step", None, "nothing reads this key; did you mean steps?")
    decision = decide(world.trial(), Observed(replace(ready, warnings=(warning,))), world.now, SETTINGS)
    condition = next(item for item in decision.status.conditions if item.type == "TaskWarning")
    assert (condition.status, condition.reason) == ("True", "UnknownKeys")
    assert "did you mean steps?" in condition.message


def test_spec_that_cannot_be_read_holds_still_and_goes_on_later() -> None:
    world = World()
    world.prepare()
    status = stall(world.trial().status, 2, "spec.agent: unknown", world.now)
    assert (status.phase, status.reason) == ("Running", "SpecInvalid")
    world.status = status.to_json()
    assert world.condition("Stalled") == "True"
    world.run_step(1)
    assert (world.condition("Stalled"), world.status["phase"]) == (None, "Running")


def test_task_that_changed_behind_the_trial_s_back_is_not_run() -> None:
    world = World()
    world.prepare()
    world.objects.clear()
    world.task = world.task.model_copy(update={"digest": "another"})
    world.wake()
    assert (world.status["phase"], world.status["reason"]) == ("Failed", "TaskChanged")


def test_variable_that_nobody_provides_is_told_once_for_all_steps() -> None:
    world = World(
        task_files(
            50, config='[verifier.env]\nKEY = "${JUDGE}"', step_config={3: '[steps.verifier.env]\nOTHER = "${OTHER}"'}
        )
    )
    world.wake()
    message = next(item["message"] for item in world.status["conditions"] if item["type"] == "TaskValid")
    assert message.count("${JUDGE}") == 1
    assert "steps[2].verifier.env.OTHER" in message and message.startswith("2 problems")


def test_trouble_of_a_pod_is_seen_soon_and_forgotten_when_it_is_over() -> None:
    world = World()
    world.prepare()
    pod = world.pod("-step-1")
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
    pod["status"] = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]}
    world.wake()
    assert world.status["reason"] == "StepStarted"
    world.sleep(10)
    world.wake()
    assert (world.status["phase"], world.status["reason"]) == ("Running", "PodNotStarted")
    assert "ImagePullBackOff: Back-off pulling image" in world.status["message"]
    world.wake()
    assert [event.reason for event in world.events].count("PodNotStarted") == 1
    world.start("-step-1")
    world.wake()
    assert (world.status["reason"], world.status["message"]) == (
        "StepStarted",
        "step 1/3 (step 1): the agent is at work",
    )


def test_pod_that_only_takes_its_time_is_no_trouble() -> None:
    world = World()
    world.wake()
    waiting = {"reason": "ContainerCreating"}
    world.pod("prepare")["status"]["containerStatuses"] = [{"name": "seed", "state": {"waiting": waiting}}]
    world.wake()
    assert world.status["reason"] == "Preparing"
