"""Files that a task must have: an instruction and a test for each step."""

from __future__ import annotations

from collections.abc import Iterator

from multistep.task.config import StepConfig, TaskConfig
from multistep.task.environment import TaskOS
from multistep.task.ignore import IgnoreRules
from multistep.task.problem import Problem
from multistep.task.tree import FileTree
from multistep.task.verifier_environment import (
    SHARED_TESTS_DIRECTORY,
    has_definition,
    step_tests_directory,
    verifier_environment,
)

_TEST_ADVICE = "it must be a file: the script that writes /logs/verifier/reward.txt or reward.json"


def missing_files(
    tree: FileTree,
    config: TaskConfig,
    rules: IgnoreRules,
    *,
    verification_disabled: bool = False,
    unnamed_steps: frozenset[str] = frozenset(),
) -> Iterator[Problem]:
    """Report files that are missing or of the wrong kind.

    Args:
        tree: the task's files.
        config: the task's configuration.
        rules: what is left out.
        verification_disabled: tests are not needed.
        unnamed_steps: steps whose directory cannot be told.
    """
    if not config.steps:
        if not tree.exists("instruction.md"):
            yield Problem("instruction.md", None, None, "there is no such file, and task.toml has no [[steps]]")
        if not verification_disabled:
            yield from _test(tree, config, None, rules)
        return
    for step in config.steps:
        if step.name in unnamed_steps:
            continue
        directory = f"steps/{step.name}"
        if not tree.exists(directory):
            advice = "there is no such directory: each step of task.toml has one of its name"
            yield Problem(directory, None, None, advice)
            continue
        yield from _instruction(tree, f"{directory}/instruction.md")
        if not verification_disabled:
            yield from _test(tree, config, step, rules)


def _instruction(tree: FileTree, path: str) -> Iterator[Problem]:
    if not tree.exists(path):
        yield Problem(path, None, None, "there is no such file: each step needs its instruction")
    elif not tree.is_file(path):
        yield Problem(path, None, None, "it must be a text file")
    else:
        try:
            tree.read(path).decode("utf-8")
        except UnicodeDecodeError as error:
            yield Problem(path, None, None, f"it is not UTF-8 text (byte {error.start}): save it as UTF-8")


def _test(tree: FileTree, config: TaskConfig, step: StepConfig | None, rules: IgnoreRules) -> Iterator[Problem]:
    """Report a missing test script, unless the verifier has an environment of its own that brings the tests (FINDINGS 47)."""
    own = verifier_environment(
        config,
        step,
        step_definition=step is not None and has_definition(tree, step_tests_directory(step)),
        shared_definition=has_definition(tree, SHARED_TESTS_DIRECTORY),
    )
    if (own is not None and own.tests_bundled) or config.environment.os is TaskOS.WINDOWS:
        # Windows is refused as a whole (`unsupported`); that a test.sh is missing would only mislead.
        return
    candidates = [f"{step_tests_directory(step)}/test.sh"] if step else []
    candidates.append(f"{SHARED_TESTS_DIRECTORY}/test.sh")
    found = next((path for path in candidates if tree.exists(path)), None)
    ignored = next((path for path in candidates if rules.excludes(path)), None)
    if found is None and ignored is None:
        yield Problem(candidates[0], None, None, f"there is no test script: write {' or '.join(candidates)}")
    elif found is None or rules.excludes(found):
        yield Problem(found or ignored or "", None, None, "a .harborignore leaves it out, and the verifier needs it")
    elif not tree.is_file(found):
        yield Problem(found, None, None, _TEST_ADVICE)
