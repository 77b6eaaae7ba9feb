"""`.harborignore`: files of tests/ and solution/ that belong to the task's folder but not to the task.

As in the reference (FINDINGS 42) the rules work inside the tests/ and solution/ directories of the task and of its steps only.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from pathspec import GitIgnoreSpec

from multistep.task.problem import Problem
from multistep.task.tree import FileTree

IGNORE_FILE = ".harborignore"
_DIRECTORIES = frozenset({"tests", "solution"})


class IgnoreRules:
    """The rules of a tree.

    Attributes:
        problems: rules that cannot be read; those files count as empty.
    """

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree
        self._rules: dict[str, GitIgnoreSpec] = {}
        self.problems: list[Problem] = []
        for path in tree:
            if is_ignore_file(path):
                self._read(path, path.rpartition("/")[0])

    @property
    def empty(self) -> bool:
        """Whether there are no rules at all."""
        return not self._rules

    def _read(self, path: str, parent: str) -> None:
        if not self._tree.is_file(path):
            self.problems.append(Problem(path, None, None, "it must be a regular file with one pattern per line"))
            return
        try:
            lines = self._tree.read(path).decode("utf-8").splitlines()
            self._rules[parent] = GitIgnoreSpec.from_lines(lines)
        except (UnicodeDecodeError, ValueError) as error:
            self.problems.append(Problem(path, None, None, f"it cannot be read: {error}"))

    def excludes(self, path: str) -> bool:
        """Whether a path, what it links to, or a directory above is ignored."""
        if self._excludes(path):
            return True
        target = self._tree.resolve(path)
        return target is not None and target != path and self._excludes(target)

    def _excludes(self, path: str) -> bool:
        parts = PurePosixPath(path).parts
        if parts and parts[-1] == IGNORE_FILE:
            return True
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


def is_ignore_file(path: str) -> bool:
    """Whether a path is a `.harborignore` that counts. It tells what is no part of the task, and is none itself."""
    parent, _, name = path.rpartition("/")
    return name == IGNORE_FILE and _in_scope(f"{parent}/")


def without_ignored(tree: FileTree) -> FileTree:
    """Return a tree without what `.harborignore` leaves out.

    The ignore files themselves stay until the task is staged: they tell why a file is missing.
    Every way into a `FileTree` ends here: the operator, `multistep pack` and the stage container must agree on what the task's files
    are, because they compare digests.
    """
    rules = IgnoreRules(tree)
    if rules.empty:
        return tree
    kept = {
        path: entry
        for path, entry in tree.items()
        if PurePosixPath(path).name == IGNORE_FILE or not _in_scope(f"{path}/") or not rules.excludes(path)
    }
    return FileTree(kept)


def _in_scope(path: str) -> bool:
    """Whether a path lies in one of the directories that rules work in; a directory's own path ends in a slash."""
    parts = path.split("/")
    if parts[0] == "steps":
        parts = parts[2:]
    return len(parts) > 1 and parts[0] in _DIRECTORIES
