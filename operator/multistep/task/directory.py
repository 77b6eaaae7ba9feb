"""Reading a task's directory. With `bundle`, the only module of the package that touches a file system."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from multistep.task.ignore import without_ignored
from multistep.task.problem import Problem
from multistep.task.tree import REPOSITORY, Entry, FileTree, TaskTreeError


def tree_from_directory(directory: Path) -> FileTree:
    """Read a directory: regular files, directories and symbolic links, with their permission bits.

    The directory's own `.git` is no part of the task, nor is what a `.harborignore` leaves out. A `.git` further down is: a step's
    workdir may well be a repository.

    Raises:
        TaskTreeError: there is no such directory, or it holds something else (a socket, a device), or a file that cannot be read; all
            problems at once.
    """
    entries: dict[str, Entry] = {}
    problems: list[Problem] = []
    unreadable: list[OSError] = []
    for root, directories, files in os.walk(directory, onerror=unreadable.append):
        if Path(root) == directory:
            directories[:] = [name for name in directories if name != REPOSITORY]
            files[:] = [name for name in files if name != REPOSITORY]
        for name in [*directories, *files]:
            path = Path(root, name)
            relative = path.relative_to(directory).as_posix()
            try:
                entry = _entry(path)
            except OSError as error:
                problems.append(_unreadable(relative, error))
                continue
            if entry is None:
                advice = "it is neither a file nor a directory nor a symbolic link: remove it"
                problems.append(Problem(relative, None, None, advice))
            else:
                entries[relative] = entry
    problems += [_unreadable(os.path.relpath(error.filename, directory), error) for error in unreadable]
    if problems:
        raise TaskTreeError(problems)
    return without_ignored(FileTree(entries))


def _unreadable(path: str, error: OSError) -> Problem:
    return Problem(path, None, None, f"it cannot be read: {error.strerror}")


def _entry(path: Path) -> Entry | None:
    status = path.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return Entry("symlink", 0o777, target=str(path.readlink()))
    if stat.S_ISDIR(status.st_mode):
        return Entry("directory", mode)
    if stat.S_ISREG(status.st_mode):
        return Entry("file", mode, path.read_bytes())
    return None
