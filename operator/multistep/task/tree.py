"""A task's files as data: path -> entry. What is parsed, validated, packed and digested; where it came from does not matter."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from multistep.task.problem import Problem, shown

Kind = Literal["file", "directory", "symlink"]

DEFAULT_MODE = 0o644
EXECUTABLE_MODE = 0o755


class TaskTreeError(Exception):
    """Files that make no task tree, with all problems."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass(frozen=True)
class Entry:
    """One file, directory or symbolic link. `mode` holds permission bits only."""

    kind: Kind
    mode: int
    content: bytes = b""
    target: str = ""


class FileTree(Mapping[str, Entry]):
    """An immutable tree: POSIX paths relative to the task's directory, sorted, parents included."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        complete = dict(entries)
        for path in entries:
            for parent in PurePosixPath(path).parents:
                if str(parent) != ".":
                    complete.setdefault(str(parent), Entry("directory", EXECUTABLE_MODE))
        self._entries = dict(sorted(complete.items()))

    def __getitem__(self, path: str) -> Entry:
        """Return the entry of a path."""
        return self._entries[path]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the paths, sorted."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def digest(self) -> str:
        """Return the SHA-256 of all paths, kinds, modes, contents and link targets, as hex."""
        total = hashlib.sha256()
        for path, entry in self._entries.items():
            mode = 0 if entry.kind == "symlink" else entry.mode
            content = hashlib.sha256(entry.content).hexdigest()
            total.update(repr((path, entry.kind, mode, content, entry.target)).encode("utf-8", "surrogateescape"))
        return total.hexdigest()

    def resolve(self, path: str) -> str | None:
        """Follow symbolic links within the tree, in every part of the path; None where it leads nowhere or outside."""
        steps = 0
        pending = list(PurePosixPath(path).parts)
        current: list[str] = []
        while pending:
            part = pending.pop(0)
            if part == "..":
                if not current:
                    return None
                current.pop()
                continue
            current.append(part)
            entry = self._entries.get("/".join(current))
            if entry is None:
                return None
            if entry.kind == "symlink":
                steps += 1
                if steps > 40 or entry.target.startswith("/"):
                    return None
                current.pop()
                pending = [*(p for p in PurePosixPath(entry.target).parts if p != "."), *pending]
        return "/".join(current)

    def is_file(self, path: str) -> bool:
        """Whether the path is a regular file, links followed."""
        found = self.resolve(path)
        return found is not None and found in self._entries and self._entries[found].kind == "file"

    def is_directory(self, path: str) -> bool:
        """Whether the path is a directory, links followed."""
        found = self.resolve(path)
        return found is not None and found in self._entries and self._entries[found].kind == "directory"

    def exists(self, path: str) -> bool:
        """Whether the path leads to something, links followed."""
        found = self.resolve(path)
        return found is not None and found in self._entries

    def read(self, path: str) -> bytes:
        """Return the content of a file, links followed.

        Raises:
            KeyError: there is no such file.
        """
        found = self.resolve(path)
        if found is None or self._entries[found].kind != "file":
            raise KeyError(path)
        return self._entries[found].content

    def below(self, directory: str) -> Iterator[str]:
        """Iterate over the paths below a directory, links not followed."""
        prefix = f"{directory}/"
        return (path for path in self._entries if path.startswith(prefix))


def clean_path(path: str) -> str | None:
    """Return a relative path without `.` and double slashes; None where it is empty, absolute or leaves the tree."""
    if not path or path.startswith("/") or "\0" in path:
        return None
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return None if not parts or ".." in parts else "/".join(parts)


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
        if clean is None:
            problems.append(_inline_problem(path, "a path must be relative to the task's directory and stay within it"))
        elif clean in entries:
            problems.append(_inline_problem(path, f"two paths name the same file, {clean}"))
        else:
            script = clean.endswith(".sh") or text.startswith("#!")
            mode = EXECUTABLE_MODE if script else DEFAULT_MODE
            entries[clean] = Entry("file", mode, text.encode("utf-8", "surrogatepass"))
    for path, mode_text in modes.items():
        clean = clean_path(path)
        if clean not in entries:
            problems.append(Problem("spec.task.inline.modes", None, shown(path), "there is no file of this path"))
        elif not re.fullmatch(r"0?[0-7]{3,4}", mode_text):
            problems.append(Problem("spec.task.inline.modes", path, shown(mode_text), "a mode is octal, such as 0755"))
        elif clean is not None:
            entries[clean] = Entry("file", int(mode_text, 8), entries[clean].content)
    for path in entries:
        for parent in PurePosixPath(path).parents:
            if str(parent) in entries:
                problems.append(_inline_problem(str(parent), f"it is a file, and {path} lies below it"))
    if problems:
        raise TaskTreeError(problems)
    return FileTree(entries)


def _inline_problem(path: str, message: str) -> Problem:
    return Problem("spec.task.inline.files", None, shown(path), message)
