"""Reading a task's directory. With `bundle`, the only module of the package that touches a file system."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from multistep.task.problem import Problem
from multistep.task.tree import Entry, FileTree, TaskTreeError

_SKIPPED = frozenset({".git", "__pycache__", ".DS_Store"})


def tree_from_directory(directory: Path) -> FileTree:
    """Read a directory: regular files, directories and symbolic links, with their permission bits.

    Raises:
        TaskTreeError: it holds something else (a socket, a device), or a file that cannot be read.
    """
    entries: dict[str, Entry] = {}
    problems: list[Problem] = []
    for root, directories, files in os.walk(directory):
        directories[:] = sorted(name for name in directories if name not in _SKIPPED)
        for name in [*directories, *files]:
            if name in _SKIPPED:
                continue
            path = Path(root, name)
            relative = path.relative_to(directory).as_posix()
            try:
                entry = _entry(path)
            except OSError as error:
                problems.append(Problem(relative, None, None, f"it cannot be read: {error.strerror}"))
                continue
            if entry is None:
                problems.append(
                    Problem(relative, None, None, "it is neither a file nor a directory nor a symbolic link")
                )
            else:
                entries[relative] = entry
    if problems:
        raise TaskTreeError(problems)
    return FileTree(entries)


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
