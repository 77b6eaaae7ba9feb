"""What the format has and this operator cannot run yet: said with a sentence, never skipped in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from multistep.task.config import TaskConfig, VerifierConfig, VerifierEnvironmentMode
from multistep.task.environment import TaskOS
from multistep.task.load import Task, verifier_mode
from multistep.task.network import NetworkMode, PhaseNetwork
from multistep.task.problem import Problem, shown

CONFIG = "task.toml"


def unsupported(task: Task) -> list[Problem]:
    """Return a problem for each setting that would be needed and is not there yet."""
    return [problem for check in _CHECKS for problem in check(task)]


def _single_step(task: Task) -> Iterator[Problem]:
    if not task.is_multi_step:
        yield Problem(CONFIG, "steps", None, "a task without [[steps]] cannot be run yet: make it a task of one step")


def _compose(task: Task) -> Iterator[Problem]:
    for name in ("docker-compose.yaml", "docker-compose.yml"):
        path = f"environment/{name}"
        if path in task.files:
            yield Problem(path, None, None, "environments of several containers cannot be run: put all into one image")


def _windows(task: Task) -> Iterator[Problem]:
    if task.config.environment.os is TaskOS.WINDOWS:
        yield Problem(CONFIG, "environment.os", "'windows'", "only linux can be run")


def _separate_verifiers(task: Task) -> Iterator[Problem]:
    advice = 'a verifier with its own environment cannot be run yet: set environment_mode = "shared"'
    for step in task.steps:
        if verifier_mode(task.config, step.config) is VerifierEnvironmentMode.SEPARATE:
            yield Problem(CONFIG, f"steps[{step.index - 1}].verifier", f"step {step.name!r}", advice)


def _accelerators(task: Task) -> Iterator[Problem]:
    environment = task.config.environment
    for name in ("gpus", "gpu_types", "tpu"):
        value = getattr(environment, name)
        if value:
            yield Problem(CONFIG, f"environment.{name}", shown(value), "accelerators cannot be requested yet")


def _network(task: Task) -> Iterator[Problem]:
    config = task.config
    phases: list[tuple[str, PhaseNetwork]] = [("agent", config.agent), ("verifier", config.verifier)]
    for step in task.steps:
        key = f"steps[{step.index - 1}]"
        phases += [(f"{key}.agent", step.config.agent), (f"{key}.verifier", step.config.verifier)]
    modes = [("environment", config.environment.network_mode)]
    modes += [(key, phase.network_mode) for key, phase in phases if phase.network_mode is not None]
    for key, mode in modes:
        if mode is not NetworkMode.PUBLIC:
            yield Problem(
                CONFIG, f"{key}.network_mode", shown(mode.value), "restricting the network cannot be enforced yet"
            )


def _artifacts(task: Task) -> Iterator[Problem]:
    advice = "only /logs/artifacts is collected yet: write there, or remove the entry"
    if task.config.artifacts:
        yield Problem(CONFIG, "artifacts", shown(task.config.artifacts), advice)
    for step in task.steps:
        if step.config.artifacts:
            yield Problem(CONFIG, f"steps[{step.index - 1}].artifacts", shown(step.config.artifacts), advice)


def _collect_hooks(task: Task) -> Iterator[Problem]:
    for key, verifier in _verifiers(task.config):
        if verifier.collect:
            yield Problem(CONFIG, f"{key}.collect", None, "commands between agent and verifier cannot be run yet")


def _agent_extras(task: Task) -> Iterator[Problem]:
    if task.config.environment.mcp_servers:
        yield Problem(CONFIG, "environment.mcp_servers", None, "MCP servers are not handed to agents yet")
    if task.config.environment.skills_dir:
        yield Problem(CONFIG, "environment.skills_dir", None, "skills are not handed to agents yet")


def _verifiers(config: TaskConfig) -> Iterator[tuple[str, VerifierConfig]]:
    yield "verifier", config.verifier
    for number, step in enumerate(config.steps or []):
        yield f"steps[{number}].verifier", step.verifier


_CHECKS: tuple[Callable[[Task], Iterator[Problem]], ...] = (
    _single_step,
    _compose,
    _windows,
    _separate_verifiers,
    _accelerators,
    _network,
    _artifacts,
    _collect_hooks,
    _agent_extras,
)
