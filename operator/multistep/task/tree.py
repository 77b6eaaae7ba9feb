"""A task's files as data: path -> entry. What is parsed, validated, packed and digested; where it came from does not matter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from multistep.task.problem import Problem

Kind = Literal["file", "directory", "symlink"]

DEFAULT_MODE = 0o644
EXECUTABLE_MODE = 0o755

REPOSITORY = ".git"
"""The one name at a task's top that is no part of it."""

LONGEST_NAME_BYTES = 255
"""What Linux' file systems take for one name."""

LONGEST_PATH_BYTES = 3_000
"""Linux takes 4,095; the rest is for the directory that the task is unpacked into."""

_MOST_LINKS = 40
"""As the kernel: more links in one path are taken for a circle."""


class TaskTreeError(Exception):
    """Files that make no task tree, with all problems."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass(frozen=True)
class Entry:
    """One file, directory or symbolic link.

    Attributes:
        kind: what it is.
        mode: permission bits, with setuid, setgid and sticky.
        content: the bytes of a file, empty for the others.
        target: what a symbolic link points to, empty for the others.
    """

    kind: Kind
    mode: int
    content: bytes = b""
    target: str = ""


@dataclass(frozen=True)
class _Walk:
    """Where following a path ended."""

    end: Literal["found", "missing", "outside", "circle"]
    path: str


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
        walk = self._follow(path)
        return walk.path if walk.end == "found" else None

    def leaves(self, path: str) -> bool:
        """Whether a path, links followed, leads out of the tree: what a textual check of one link's target does not see."""
        return self._follow(path).end == "outside"

    def goes_in_circles(self, path: str) -> bool:
        """Whether a link leads back to itself, or to a directory that it lies in."""
        walk = self._follow(path)
        if walk.end != "found":
            return walk.end == "circle"
        return path.startswith(f"{walk.path}/" if walk.path else "")

    def _follow(self, path: str) -> _Walk:
        links = 0
        # Reversed: the next part is the last, so that putting a link's target in front costs no copying.
        pending = list(reversed(PurePosixPath(path).parts))
        current: list[str] = []
        missing = False
        while pending:
            part = pending.pop()
            if part == "..":
                if not current:
                    return _Walk("outside", "")
                current.pop()
                continue
            current.append(part)
            entry = self._entries.get("/".join(current))
            if entry is None:
                missing = True
            elif entry.kind == "symlink":
                links += 1
                if entry.target.startswith("/"):
                    return _Walk("outside", "")
                if links > _MOST_LINKS:
                    return _Walk("circle", "")
                current.pop()
                pending.extend(reversed(PurePosixPath(entry.target).parts))
        return _Walk("missing" if missing else "found", "/".join(current))

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


def path_fault(path: str) -> str | None:
    """Say why a path cannot be a file's in a task, or None where it can."""
    if clean_path(path) is None:
        return "a path must be relative to the task's directory and stay within it"
    raw = path.encode("utf-8", "surrogatepass")
    if len(raw) > LONGEST_PATH_BYTES or any(len(part) > LONGEST_NAME_BYTES for part in raw.split(b"/")):
        return f"a path has at most {LONGEST_PATH_BYTES} bytes, and each name in it at most {LONGEST_NAME_BYTES}"
    return None
