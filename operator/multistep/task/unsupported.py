"""What the format has and this operator cannot run yet: said with a sentence, never skipped in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from multistep.task.artifacts import MAIN_SERVICE, Artifact, ArtifactConfig
from multistep.task.config import TaskConfig, VerifierConfig
from multistep.task.environment import EnvironmentConfig, TaskOS
from multistep.task.load import COMPOSE_FILE, TRAJECTORY_FILE
from multistep.task.parse import CONFIG
from multistep.task.problem import Problem, shown
from multistep.task.task import Task


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
    for key, environment in _environments(task.config):
        if environment.os is TaskOS.WINDOWS:
            yield Problem(CONFIG, f"{key}.os", "'windows'", "only linux can be run")


def _accelerators(task: Task) -> Iterator[Problem]:
    for key, environment in _environments(task.config):
        if environment.gpus and environment.tpu is not None:
            advice = "an environment has GPUs or TPUs, not both: remove one"
            yield Problem(CONFIG, f"{key}.tpu", shown(environment.tpu.type), advice)


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


def _trajectories(task: Task) -> Iterator[Problem]:
    files = [path for path in task.files if path == TRAJECTORY_FILE]
    files += [f"steps/{step.name}/{TRAJECTORY_FILE}" for step in task.steps if step.has_trajectory]
    for path in files:
        yield Problem(path, None, None, "agents cannot be seeded with an earlier conversation yet: remove the file")


def _artifact_lists(task: Task) -> Iterator[tuple[str, list[Artifact]]]:
    yield "artifacts", task.config.artifacts
    for step in task.steps:
        yield f"steps[{step.index - 1}].artifacts", step.config.artifacts


def _paths(artifacts: list[Artifact]) -> list[str]:
    entries = [ArtifactConfig(source=entry) if isinstance(entry, str) else entry for entry in artifacts]
    return ["|".join([entry.source, entry.destination or "", *entry.exclude]) for entry in entries]


def _environments(config: TaskConfig) -> Iterator[tuple[str, EnvironmentConfig]]:
    yield "environment", config.environment
    for key, verifier in _verifiers(config):
        if verifier.environment is not None:
            yield f"{key}.environment", verifier.environment


def _verifiers(config: TaskConfig) -> Iterator[tuple[str, VerifierConfig]]:
    yield "verifier", config.verifier
    for number, step in enumerate(config.steps or []):
        yield f"steps[{number}].verifier", step.verifier


_CHECKS: tuple[Callable[[Task], Iterator[Problem]], ...] = (
    _single_step,
    _compose,
    _windows,
    _accelerators,
    _artifacts_of_services,
    _odd_artifacts,
    _collect_hooks,
    _trajectories,
)
