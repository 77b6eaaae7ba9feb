"""The `resolved` part of every case: what holds for each step. The `observed` part (what an environment is asked to do, in order) is out
of scope here: it says how the reference runs a step, which the tests of pods and runner cover for this operator."""

from typing import Any

import pytest
from parity_vectors import cases
from pydantic import ValidationError

from multistep.task import (
    EffectiveStep,
    Entry,
    EnvReference,
    FileTree,
    LoadedTask,
    NetworkPolicy,
    Overrides,
    effective_step,
    load_task,
    parse_env_value,
)

_TASK_TIMEOUT = "the task's [verifier] timeout_sec holds for its steps; the reference ignores it (FINDINGS 14)"
DELIBERATE_DIFFERENCES = {
    "verifier-timeout-task-only": _TASK_TIMEOUT,
    "verifier-timeout-step-table-without-timeout": _TASK_TIMEOUT,
}
INHERITED_TIMEOUT_SEC = 100.0

# The trial cannot be created in the reference, because a variable is not set on the host. Here the trial provides variables, so it is
# the caller that refuses (pods.environment.unresolved); the task format says that there is a reference, and to what.
UNRESOLVED = {
    "env-template-unset": EnvReference("PARITY_UNSET", None),
    "env-template-dash-only": EnvReference("PARITY_UNSET-d", None),
    "env-template-odd-name": EnvReference("PARITY UNSET", None),
}


def _load(case: dict[str, Any]) -> LoadedTask:
    files = {path: Entry("file", 0o755, b"x") for path in case["files"]}
    tree = FileTree({"task.toml": Entry("file", 0o644, case["toml"].encode()), **files})
    return load_task(tree, verification_disabled=case["trial_overrides"].get("verifier", {}).get("disable", False))


def _policy(policy: NetworkPolicy | None) -> list[str] | None:
    return None if policy is None else [policy.mode.value, *policy.hosts]


def _resolved(step: EffectiveStep) -> dict[str, Any]:
    environment = step.verifier_environment
    return {
        "agent_timeout_sec": step.agent_timeout_sec,
        "verifier_timeout_sec": step.verifier_timeout_sec,
        "agent_user": step.agent_user,
        "verifier_user": step.verifier_user,
        "verifier_mode": step.verifier_mode.value,
        "verifier_environment": environment
        and {
            "docker_image": environment.docker_image,
            "definition_dir": environment.definition_directory,
            "tests_bundled": environment.tests_bundled,
            "cpus": environment.resources.cpus,
            "memory_mb": environment.resources.memory_mb,
            "workdir": environment.workdir,
            "env": environment.env,
        },
        "network": {
            "agent_env_baseline": _policy(step.network.agent_environment),
            "agent_phase": _policy(step.network.agent_phase),
            "verifier_env_baseline": _policy(step.network.verifier_environment),
            "verifier_phase": _policy(step.network.verifier_phase),
        },
        "artifact_sources": [artifact.source for artifact in step.artifacts],
    }


@pytest.mark.parametrize("case", cases("effective_step"))
def test_step_resolves_as_in_the_reference(case: dict[str, Any]) -> None:
    """Compares `resolved` only; see the module's docstring for `observed`."""
    name = case["name"]
    loaded = _load(case)
    if name in UNRESOLVED:
        assert case["result"]["rejected"] == "ValueError"
        assert loaded.task is not None
        assert parse_env_value(loaded.task.config.environment.env["A"]) == UNRESOLVED[name]
        return
    if "rejected" in case["result"]:
        assert loaded.task is None
        return
    assert loaded.task is not None, [str(problem) for problem in loaded.problems]
    overrides = Overrides.model_validate(case["trial_overrides"])
    steps: list[Any] = loaded.task.steps or [None]
    for step, expected in zip(steps, case["result"]["resolved"], strict=True):
        assert (step.name if step else None) == expected["step"]
        found = _resolved(effective_step(loaded.task, step, overrides))
        if name in DELIBERATE_DIFFERENCES:
            assert expected["verifier_timeout_sec"] != INHERITED_TIMEOUT_SEC
            expected = {**expected, "verifier_timeout_sec": INHERITED_TIMEOUT_SEC}
        # A task without steps has no users of a step in the vectors.
        assert {key: found[key] for key in expected if key != "step"} == {
            key: value for key, value in expected.items() if key != "step"
        }


def _observed(case: dict[str, Any], op: str) -> list[dict[str, Any]]:
    return [item for item in case["result"]["observed"] if item["op"] == op and item["role"] == "agent"]


@pytest.mark.parametrize("name", ["resources-task", "resources-trial-override"])
def test_resources_are_what_the_reference_starts_the_agents_environment_with(name: str) -> None:
    case = next(param.values[0] for param in cases("effective_step") if param.values[0]["name"] == name)
    task = _load(case).task
    assert task is not None
    found = effective_step(task, task.steps[0], Overrides.model_validate(case["trial_overrides"])).resources
    start = _observed(case, "start")[0]
    amounts = ("cpus", "memory_mb", "storage_mb", "gpus")
    assert [getattr(found, key) for key in amounts] == [start[key] for key in amounts]


def test_every_difference_is_a_case() -> None:
    names = {param.values[0]["name"] for param in cases("effective_step")}
    assert names >= DELIBERATE_DIFFERENCES.keys() | UNRESOLVED.keys()


@pytest.mark.parametrize(
    "overrides",
    [
        {"agent": {"override_timeout_sec": float("nan")}},
        {"agent": {"max_timeout_sec": -1}},
        {"timeout_multiplier": float("inf")},
        {"unknown": 1},
    ],
)
def test_overrides_that_cannot_be_meant_are_refused(overrides: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Overrides.model_validate(overrides)
