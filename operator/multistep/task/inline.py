"""A task tree from texts, as they stand inline in a trial's spec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from multistep.task.ignore import without_ignored
from multistep.task.problem import Problem, shown
from multistep.task.tree import (
    DEFAULT_MODE,
    EXECUTABLE_MODE,
    Entry,
    FileTree,
    TaskTreeError,
    clean_path,
    path_fault,
)

FILES = "spec.task.inline.files"
MODES = "spec.task.inline.modes"


def tree_from_inline(files: Mapping[str, str], modes: Mapping[str, str]) -> FileTree:
    """Make a tree of texts: path -> text, and octal modes for some of them.

    Without a mode a file is 0644, or 0755 when its name ends in `.sh` or its text starts with `#!`.

    Raises:
        TaskTreeError: paths that cannot be, or modes without a file; all problems at once.
    """
    problems: list[Problem] = []
    entries: dict[str, Entry] = {}
    for path, text in files.items():
        clean = clean_path(path)
        fault = path_fault(path) or _encoding_fault(path)
        if clean is None or fault is not None:
            problems.append(_of_file(path, fault or ""))
        elif clean in entries:
            problems.append(_of_file(path, f"two paths name the same file, {clean}"))
        else:
            script = clean.endswith(".sh") or text.startswith("#!")
            mode = EXECUTABLE_MODE if script else DEFAULT_MODE
            entries[clean] = Entry("file", mode, text.encode("utf-8", "surrogatepass"))
    problems += _apply_modes(entries, modes)
    for path in entries:
        for parent in PurePosixPath(path).parents:
            if str(parent) in entries:
                problems.append(_of_file(str(parent), f"it is a file, and {path} lies below it"))
    if problems:
        raise TaskTreeError(problems)
    return without_ignored(FileTree(entries))


def _apply_modes(entries: dict[str, Entry], modes: Mapping[str, str]) -> list[Problem]:
    problems = []
    seen: set[str] = set()
    for path, mode in modes.items():
        clean = clean_path(path)
        if clean is None or clean not in entries:
            problems.append(Problem(MODES, None, shown(path), "there is no file of this path"))
        elif clean in seen:
            problems.append(Problem(MODES, path, shown(mode), f"two modes are given for the same file, {clean}"))
        elif not re.fullmatch(r"0?[0-7]{3,4}", mode, re.ASCII):
            problems.append(Problem(MODES, path, shown(mode), "a mode is octal, such as 0755"))
        else:
            seen.add(clean)
            entries[clean] = Entry("file", int(mode, 8), entries[clean].content)
    return problems


def _encoding_fault(path: str) -> str | None:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return "a path must be text that UTF-8 can write"
    return None


def _of_file(path: str, message: str) -> Problem:
    return Problem(FILES, None, shown(path), message)
