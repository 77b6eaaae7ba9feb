"""From files to a task: parse task.toml, validate it with its directory, and report all problems at once."""

from __future__ import annotations

from dataclasses import dataclass

from multistep.task.config import StepConfig, TaskConfig
from multistep.task.ignore import IgnoreRules
from multistep.task.links import link_problems, link_warnings
from multistep.task.numbers_check import number_problems
from multistep.task.parse import CONFIG, parse
from multistep.task.problem import Problem
from multistep.task.required_files import missing_files
from multistep.task.task import Origin, Step, Task
from multistep.task.tree import FileTree
from multistep.task.unknown import ignored_settings, unknown_keys
from multistep.task.validation import validate
from multistep.task.verifier_environment import (
    SHARED_TESTS_DIRECTORY,
    has_definition,
    has_loose_files,
    step_tests_directory,
)

COMPOSE_FILE = "environment/docker-compose.yaml"
TRAJECTORY_FILE = "trajectory.json"

_TELLING_FILES = (COMPOSE_FILE, TRAJECTORY_FILE)
_MOST_PROBLEMS = 100
"""Nobody reads more, and a status has no room for them."""


@dataclass(frozen=True)
class LoadedTask:
    """The result of loading: the task, or why there is none; warnings in any case."""

    task: Task | None
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


def load_task(tree: FileTree, *, verification_disabled: bool = False) -> LoadedTask:
    """Load a task from its files. Never raises on bad input: what is wrong is in the result, all of it.

    Args:
        tree: the task's files.
        verification_disabled: the trial runs no tests, so none are needed.
    """
    document, problems = parse(tree)
    if document is None:
        return LoadedTask(None, tuple(problems))
    validated = validate(document)
    config = validated.config
    rules = IgnoreRules(tree)
    ignored = [] if config is None else ignored_settings(config)
    warnings = (*unknown_keys(document), *ignored, *link_warnings(tree, config, rules))
    problems += validated.problems
    if config is not None:
        problems += number_problems(config)
    problems += [*link_problems(tree, config, rules), *rules.problems]
    if config is not None and validated.steps_known:
        problems += missing_files(
            tree,
            config,
            rules,
            verification_disabled=verification_disabled,
            unnamed_steps=validated.unnamed_steps,
        )
    if config is None or problems:
        return LoadedTask(None, _limited(problems), warnings)
    return LoadedTask(_task(tree, config), (), warnings)


def _limited(problems: list[Problem]) -> tuple[Problem, ...]:
    different = list(dict.fromkeys(problems))
    if len(different) <= _MOST_PROBLEMS:
        return tuple(different)
    more = Problem(CONFIG, None, None, f"there are {len(different) - _MOST_PROBLEMS} more problems")
    return (*different[:_MOST_PROBLEMS], more)


def _task(tree: FileTree, config: TaskConfig) -> Task:
    return Task(
        config=config,
        digest=tree.digest(),
        steps=[_step(tree, index, step) for index, step in enumerate(config.steps or [], start=1)],
        has_shared_tests=tree.is_directory(SHARED_TESTS_DIRECTORY),
        has_shared_tests_definition=has_definition(tree, SHARED_TESTS_DIRECTORY),
        has_environment_files=has_loose_files(tree),
        files=[path for path in _TELLING_FILES if tree.exists(path)],
    )


def _step(tree: FileTree, index: int, config: StepConfig) -> Step:
    directory = f"steps/{config.name}"
    tests = step_tests_directory(config)
    solution = _solution(tree, directory)
    solution_directory = "solution" if solution == "shared" else f"{directory}/solution"
    return Step(
        index=index,
        config=config,
        has_workdir=tree.is_directory(f"{directory}/workdir"),
        has_setup=tree.is_file(f"{directory}/workdir/setup.sh"),
        has_tests=tree.is_directory(tests),
        has_tests_definition=has_definition(tree, tests),
        has_trajectory=tree.exists(f"{directory}/{TRAJECTORY_FILE}"),
        test_script=_test_script(tree, tests),
        solution=solution,
        has_solve_script=solution is not None and tree.is_file(f"{solution_directory}/solve.sh"),
    )


def _solution(tree: FileTree, directory: str) -> Origin | None:
    """Return whose solution serves a step. One of its own hides the shared one, whatever it holds (FINDINGS 36)."""
    if tree.exists(f"{directory}/solution"):
        return "step" if tree.is_directory(f"{directory}/solution") else None
    return "shared" if tree.is_directory("solution") else None


def _test_script(tree: FileTree, tests: str) -> Origin | None:
    if tree.is_file(f"{tests}/test.sh"):
        return "step"
    return "shared" if tree.is_file(f"{SHARED_TESTS_DIRECTORY}/test.sh") else None
