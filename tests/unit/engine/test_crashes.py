"""The operator is killed after each of its writes in each pass of whole trials: every trial ends as if nothing had happened."""

from collections.abc import Callable
from typing import Any

import pytest
from support.world import World, prepare_message, step_message, task_files, verifier_message

from multistep.pods.names import LABEL_ATTEMPT, LABEL_ROLE

ENDED = ("Succeeded", "Stopped", "Failed")
Environment = Callable[[World, str, str], None]


def _finish(world: World, name: str, role: str) -> None:
    world.start(name)
    if _over(world, name):
        return
    message = {"prepare": prepare_message(), "step": step_message(), "verifier": verifier_message(0.4)}[role]
    world.finish(name, message)


def _fail_setup(world: World, name: str, role: str) -> None:
    if role == "step":
        world.start(name)
        world.finish(name, step_message("SetupError"))
    else:
        _finish(world, name, role)


def _never_start_a_verifier(world: World, name: str, role: str) -> None:
    if role == "verifier":
        world.sleep(700)
    else:
        _finish(world, name, role)


def _hang(world: World, name: str, role: str) -> None:
    if role == "step":
        if world.pods[name]["status"]["phase"] == "Pending":
            world.start(name)
        world.sleep(300)
    else:
        _finish(world, name, role)


def _evict_the_first_attempt(world: World, name: str, role: str) -> None:
    first = world.pods[name]["metadata"]["labels"][LABEL_ATTEMPT] == "1"
    if first and role == "verifier":
        world.start(name)
        world.evict(name)
    else:
        _finish(world, name, role)


def _over(world: World, name: str) -> bool:
    states = world.pods[name]["status"].get("containerStatuses", [])
    return world.pods[name]["status"]["phase"] == "Failed" or any("terminated" in state["state"] for state in states)


SCENARIOS: dict[str, tuple[Environment, dict[str, Any], str]] = {
    "success": (_finish, {}, ""),
    "early stop": (_finish, {}, "min_reward = 0.5"),
    "failing setup": (_fail_setup, {}, ""),
    "pod that never starts": (_never_start_a_verifier, {}, ""),
    "deadline of the trial": (_hang, {"activeDeadlineSeconds": 1000}, ""),
    "eviction": (_evict_the_first_attempt, {"backoffLimit": 2}, ""),
}


def _drive(scenario: str, crash: tuple[int, int] | None = None) -> tuple[World, int]:
    """Run a trial to its end; with `crash`, the operator dies in that pass after so many writes. Returns the passes it took."""
    environment, spec, step = SCENARIOS[scenario]
    world = World(task_files(2, step_config={1: step}), **spec)
    for number in range(60):
        world.wake(crash_after=crash[1] if crash is not None and crash[0] == number else None)
        if world.status.get("phase") in ENDED:
            world.wake()
            return world, number + 1
        for name in [name for name in world.pods if not _over(world, name)]:
            labels = world.pods[name]["metadata"]["labels"]
            environment(world, name, labels[LABEL_ROLE])
    raise AssertionError(f"{scenario} {crash}: the trial does not end: {world.status}")


def _result(world: World) -> dict[str, Any]:
    status = world.status
    keys = ("phase", "reason", "attempt", "rewards", "rewardValid", "gradedSteps", "earlyStop")
    error = status.get("error", {})
    steps = [(step["phase"], step.get("rewards")) for step in status["steps"]]
    return {"error": (error.get("type"), error.get("step")), "steps": steps, **{key: status.get(key) for key in keys}}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_trial_ends_the_same_wherever_the_operator_was_killed(scenario: str) -> None:
    undisturbed, passes = _drive(scenario)
    for number in range(passes):
        for writes in range(6):
            world, _ = _drive(scenario, (number, writes))
            where = f"killed in pass {number} after {writes} writes"
            assert _result(world) == _result(undisturbed), where
            assert all(runs == 1 for runs in world.agent_runs.values()), where
            assert all(_over(world, name) for name in world.pods), where
            claims = [name for kind, name in world.objects if kind == "PersistentVolumeClaim"]
            assert claims == [world.status["workspace"]["claimName"]], where
