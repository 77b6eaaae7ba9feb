"""What the format has and this operator cannot run yet: said with a sentence, never skipped in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from multistep.task.artifacts import MAIN_SERVICE, Artifact, ArtifactConfig
from multistep.task.config import TaskConfig, VerifierConfig, VerifierEnvironmentMode
from multistep.task.environment import TaskOS
from multistep.task.load import COMPOSE_FILE, TRAJECTORY_FILE
from multistep.task.network import NetworkMode, PhaseNetwork
from multistep.task.parse import CONFIG
from multistep.task.problem import Problem, shown
from multistep.task.task import Task
from multistep.task.verifier_environment import verifier_mode


def unsupported(task: Task) -> list[Problem]:
    """Return a problem for each setting that would be needed and is not there yet."""
    return [problem for check in _CHECKS for problem in check(task)]


def _single_step(task: Task) -> Iterator[Problem]:
    if not task.is_multi_step:
        yield Problem(CONFIG, "steps", None, "a task without [[steps]] cannot be run yet: make it a task of one step")


def _compose(task: Task) -> Iterator[Problem]:
    if COMPOSE_FILE in task.files:
        advice = "environments of several containers cannot be run: put all into one image"
        yield Problem(COMPOSE_FILE, None, None, advice)


def _windows(task: Task) -> Iterator[Problem]:
    if task.config.environment.os is TaskOS.WINDOWS:
        yield Problem(CONFIG, "environment.os", "'windows'", "only linux can be run")


def _separate_verifiers(task: Task) -> Iterator[Problem]:
    advice = 'a verifier with its own environment cannot be run yet: set environment_mode = "shared"'
    for step in task.steps:
        if verifier_mode(task.config, step.config) is VerifierEnvironmentMode.SEPARATE:
            yield Problem(CONFIG, f"steps[{step.index - 1}].verifier", f"step {step.name!r}", advice)


def _gpus(task: Task) -> Iterator[Problem]:
    for name in ("gpus", "gpu_types"):
        value = getattr(task.config.environment, name)
        if value:
            yield Problem(CONFIG, f"environment.{name}", shown(value), "GPUs cannot be requested yet")


def _tpu(task: Task) -> Iterator[Problem]:
    tpu = task.config.environment.tpu
    if tpu is not None:
        yield Problem(CONFIG, "environment.tpu", shown(tpu.type), "TPUs cannot be requested yet")


def _network_mode(task: Task) -> Iterator[Problem]:
    modes = [("environment", task.config.environment.network_mode)]
    modes += [(key, phase.network_mode) for key, phase in _phases(task) if phase.network_mode is not None]
    for key, mode in modes:
        if mode is not NetworkMode.PUBLIC:
            advice = "restricting the network cannot be enforced yet"
            yield Problem(CONFIG, f"{key}.network_mode", shown(mode.value), advice)


def _allowed_hosts(task: Task) -> Iterator[Problem]:
    hosts = [("environment", task.config.environment.allowed_hosts)]
    hosts += [(key, phase.allowed_hosts) for key, phase in _phases(task)]
    for key, allowed in hosts:
        if allowed:
            advice = "allowing some hosts only cannot be enforced yet"
            yield Problem(CONFIG, f"{key}.allowed_hosts", shown(allowed), advice)


def _artifacts_of_services(task: Task) -> Iterator[Problem]:
    advice = "there is one container, so nothing can be collected from other services"
    for key, artifacts in _artifact_lists(task):
        for number, artifact in enumerate(artifacts):
            if isinstance(artifact, ArtifactConfig) and not artifact.of_main:
                yield Problem(CONFIG, f"{key}[{number}].service", shown(artifact.service), advice)


def _odd_artifacts(task: Task) -> Iterator[Problem]:
    for key, artifacts in _artifact_lists(task):
        for number, text in enumerate(_paths(artifacts)):
            if "\n" in text:
                yield Problem(CONFIG, f"{key}[{number}]", shown(text), "a path with a line break cannot be collected")


def _collect_hooks(task: Task) -> Iterator[Problem]:
    for key, verifier in _verifiers(task.config):
        for number, hook in enumerate(verifier.collect):
            if hook.service != MAIN_SERVICE:
                advice = "there is one container, so no command can be run in other services"
                yield Problem(CONFIG, f"{key}.collect[{number}].service", shown(hook.service), advice)


def _mcp_servers(task: Task) -> Iterator[Problem]:
    if task.config.environment.mcp_servers:
        yield Problem(CONFIG, "environment.mcp_servers", None, "MCP servers are not handed to agents yet")


def _skills(task: Task) -> Iterator[Problem]:
    directory = task.config.environment.skills_dir
    if directory:
        yield Problem(CONFIG, "environment.skills_dir", shown(directory), "skills are not handed to agents yet")


def _trajectories(task: Task) -> Iterator[Problem]:
    files = [path for path in task.files if path == TRAJECTORY_FILE]
    files += [f"steps/{step.name}/{TRAJECTORY_FILE}" for step in task.steps if step.has_trajectory]
    for path in files:
        yield Problem(path, None, None, "agents cannot be seeded with an earlier conversation yet: remove the file")


def _phases(task: Task) -> Iterator[tuple[str, PhaseNetwork]]:
    yield "agent", task.config.agent
    yield "verifier", task.config.verifier
    for step in task.steps:
        key = f"steps[{step.index - 1}]"
        yield f"{key}.agent", step.config.agent
        yield f"{key}.verifier", step.config.verifier


def _artifact_lists(task: Task) -> Iterator[tuple[str, list[Artifact]]]:
    yield "artifacts", task.config.artifacts
    for step in task.steps:
        yield f"steps[{step.index - 1}].artifacts", step.config.artifacts


def _paths(artifacts: list[Artifact]) -> list[str]:
    entries = [ArtifactConfig(source=entry) if isinstance(entry, str) else entry for entry in artifacts]
    return ["|".join([entry.source, entry.destination or "", *entry.exclude]) for entry in entries]


def _verifiers(config: TaskConfig) -> Iterator[tuple[str, VerifierConfig]]:
    yield "verifier", config.verifier
    for number, step in enumerate(config.steps or []):
        yield f"steps[{number}].verifier", step.verifier


_CHECKS: tuple[Callable[[Task], Iterator[Problem]], ...] = (
    _single_step,
    _compose,
    _windows,
    _separate_verifiers,
    _gpus,
    _tpu,
    _network_mode,
    _allowed_hosts,
    _artifacts_of_services,
    _odd_artifacts,
    _collect_hooks,
    _mcp_servers,
    _skills,
    _trajectories,
)
