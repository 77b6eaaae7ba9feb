"""Where a step is verified: in the agent's environment, or in which one of its own (FINDINGS 44-47)."""

from __future__ import annotations

from dataclasses import dataclass, field

from multistep.task.config import StepConfig, TaskConfig, VerifierEnvironmentMode
from multistep.task.environment import EnvironmentConfig
from multistep.task.resources import Resources, environment_resources
from multistep.task.tree import FileTree

ENVIRONMENT_DIRECTORY = "environment"
SHARED_TESTS_DIRECTORY = "tests"
_DEFINITIONS = ("Dockerfile", "docker-compose.yaml")


@dataclass(frozen=True)
class VerifierEnvironment:
    """The environment of a separate verifier.

    Attributes:
        docker_image: a ready image; None where it is built from `definition_directory`.
        definition_directory: directory of the task that describes the image.
        tests_bundled: whether the image brings the tests, so that none are uploaded.
        resources: what it asks for.
        workdir: working directory; None means the image's own.
        env: environment variables, references not resolved.
    """

    docker_image: str | None
    definition_directory: str
    tests_bundled: bool
    resources: Resources
    workdir: str | None = None
    env: dict[str, str] = field(default_factory=dict)


def step_tests_directory(step: StepConfig) -> str:
    """Return the directory of a step's own tests."""
    return f"steps/{step.name}/tests"


def has_definition(tree: FileTree, directory: str) -> bool:
    """Whether a directory describes an image. Other spellings of these names do not count."""
    return any(tree.is_file(f"{directory}/{name}") for name in _DEFINITIONS)


def has_loose_files(tree: FileTree) -> bool:
    """Whether environment/ describes no image and has files: the reference uploads them to the working directory of a ready image."""
    if has_definition(tree, ENVIRONMENT_DIRECTORY):
        return False
    return any(path.startswith(f"{ENVIRONMENT_DIRECTORY}/") for path in tree)


def verifier_mode(config: TaskConfig, step: StepConfig | None) -> VerifierEnvironmentMode:
    """Return where a step's verifier runs: as the step says, else as the task says, else shared."""
    own = step.verifier.own_mode if step else None
    return own or config.verifier.own_mode or VerifierEnvironmentMode.SHARED


def verifier_settings(config: TaskConfig, step: StepConfig | None) -> EnvironmentConfig:
    """Return the table that holds limits, env and network of a separate verifier: the step's, else the task's, else the agent's."""
    own = step.verifier.environment if step else None
    return own or config.verifier.environment or config.environment


def verifier_environment(
    config: TaskConfig, step: StepConfig | None, *, step_definition: bool, shared_definition: bool
) -> VerifierEnvironment | None:
    """Return the environment that a step's verifier needs; None in shared mode.

    The image comes from the first of: the step's table, the step's tests, the task's verifier table, the shared tests; else it is the
    agent's own, and the tests are uploaded.

    Args:
        config: the task's.
        step: the step's; None for a task without steps.
        step_definition: whether the step's own tests describe an image.
        shared_definition: whether the shared tests do.
    """
    if verifier_mode(config, step) is VerifierEnvironmentMode.SHARED:
        return None
    candidates = [(config.verifier.environment, SHARED_TESTS_DIRECTORY, shared_definition)]
    if step is not None:
        candidates.insert(0, (step.verifier.environment, step_tests_directory(step), step_definition))
    image, directory, bundled = config.environment.docker_image, ENVIRONMENT_DIRECTORY, False
    for table, tests, has_own_definition in candidates:
        if table is not None and table.docker_image:
            image, directory, bundled = table.docker_image, tests, True
            break
        if has_own_definition:
            image, directory, bundled = None, tests, True
            break
    settings = verifier_settings(config, step)
    return VerifierEnvironment(
        image, directory, bundled, environment_resources(settings), settings.workdir, dict(settings.env)
    )
