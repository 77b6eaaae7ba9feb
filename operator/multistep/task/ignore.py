"""`.harborignore`: files of tests/ and solution/ that are not uploaded. It works there only, as in the reference."""

from __future__ import annotations

from pathlib import PurePosixPath

from pathspec import GitIgnoreSpec

from multistep.task.problem import Problem
from multistep.task.tree import FileTree

FILE_NAME = ".harborignore"
_SCOPES = GitIgnoreSpec.from_lines(["/tests/", "/solution/", "/steps/*/tests/", "/steps/*/solution/"])


class IgnoreRules:
    """The rules of a tree."""

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree
        self._rules: dict[str, GitIgnoreSpec] = {}
        self.problems: list[Problem] = []
        for path in tree:
            if PurePosixPath(path).name == FILE_NAME and _in_scope(str(PurePosixPath(path).parent) + "/"):
                self._read(path)

    def _read(self, path: str) -> None:
        if not self._tree.is_file(path):
            self.problems.append(Problem(path, None, None, "it must be a regular file with one pattern per line"))
            return
        try:
            lines = self._tree.read(path).decode("utf-8").splitlines()
            self._rules[str(PurePosixPath(path).parent)] = GitIgnoreSpec.from_lines(lines)
        except (UnicodeDecodeError, ValueError) as error:
            self.problems.append(Problem(path, None, None, f"it cannot be read: {error}"))

    def excludes(self, path: str) -> bool:
        """Whether a path, or a directory above it, is ignored."""
        if PurePosixPath(path).name == FILE_NAME:
            return True
        parts = PurePosixPath(path).parts
        for length in range(1, len(parts) + 1):
            candidate = "/".join(parts[:length])
            slash = "/" if length < len(parts) or self._tree.is_directory(candidate) else ""
            if _in_scope(candidate + slash) and self._matches(candidate, slash):
                return True
        return False

    def _matches(self, candidate: str, slash: str) -> bool:
        excluded = False
        for parent in reversed(PurePosixPath(candidate).parents):
            spec = self._rules.get(str(parent))
            if spec is not None:
                relative = PurePosixPath(candidate).relative_to(parent).as_posix()
                found = spec.check_file(relative + slash).include
                excluded = excluded if found is None else found
        return excluded


def _in_scope(path: str) -> bool:
    return _SCOPES.match_file(path)
