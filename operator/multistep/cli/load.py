"""Reading a task's directory for a command, with errors that are sentences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from multistep.task import BundleError, FileTree, Problem, Task, TaskTreeError, load_task, tree_from_directory


class TaskDirectoryError(Exception):
    """There is no task that can be used; the message says why, one line per problem."""


@dataclass(frozen=True)
class TaskDirectory:
    """A task as it lies in a directory."""

    tree: FileTree
    task: Task
    warnings: tuple[Problem, ...]


def read_task(directory: Path) -> TaskDirectory:
    """Read and validate a task's directory.

    Raises:
        TaskDirectoryError: there is no such directory, or the task has problems; all of them are listed.
    """
    if not directory.is_dir():
        raise TaskDirectoryError(f"{directory} is not a directory")
    try:
        tree = tree_from_directory(directory)
    except (TaskTreeError, BundleError, OSError) as error:
        raise TaskDirectoryError(str(error)) from error
    loaded = load_task(tree)
    if loaded.task is None or loaded.problems:
        lines = "\n".join(f"  {problem}" for problem in loaded.problems)
        raise TaskDirectoryError(f"the task has problems:\n{lines}")
    return TaskDirectory(tree, loaded.task, loaded.warnings)
