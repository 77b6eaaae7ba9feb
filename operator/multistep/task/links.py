"""Symbolic links that a task cannot have: those that leave it, and those that never end (FINDINGS 41)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from multistep.task.config import TaskConfig
from multistep.task.ignore import IgnoreRules
from multistep.task.problem import Problem, shown
from multistep.task.tree import FileTree


def link_problems(tree: FileTree, config: TaskConfig | None, rules: IgnoreRules) -> Iterator[Problem]:
    """Refuse links that leave the task, and those that go in circles, in what is uploaded: tests/, solution/ and declared steps."""
    circular = set(_circular(tree))
    for path, target in _links(tree, rules):
        if not _is_uploaded(path, config):
            continue
        if tree.leaves(path):
            advice = "this symbolic link leads out of the task: copy what it points to instead"
            yield Problem(path, None, shown(target), advice)
        elif path in circular or tree.goes_in_circles(path):
            yield Problem(path, None, shown(target), "this symbolic link goes in a circle")


def link_warnings(tree: FileTree, config: TaskConfig | None, rules: IgnoreRules) -> Iterator[Problem]:
    """Tell of links that leave the task from elsewhere. As in the reference they do no harm, but no bundle holds them."""
    for path, target in _links(tree, rules):
        if not _is_uploaded(path, config) and tree.leaves(path):
            advice = "this symbolic link leads out of the task: a bundle goes without it"
            yield Problem(path, None, shown(target), advice)


def _links(tree: FileTree, rules: IgnoreRules) -> Iterator[tuple[str, str]]:
    yield from (
        (path, entry.target) for path, entry in tree.items() if entry.kind == "symlink" and not rules.excludes(path)
    )


def _is_uploaded(path: str, config: TaskConfig | None) -> bool:
    parts = path.split("/")
    if parts[0] in ("tests", "solution") or path == "steps":
        return True
    return parts[0] == "steps" and (config is None or parts[1] in {step.name for step in config.steps or []})


def _circular(tree: FileTree) -> Iterator[str]:
    """Return links to directories by which one never gets to the end of walking through the tree.

    Directories are nodes; a directory leads to those in it and to those that its links point to. Whatever has no way out, or no way
    in, is taken away until nothing changes: what is left goes in circles.
    """
    edges: dict[str, set[str]] = defaultdict(set)
    links: list[tuple[str, str, str]] = []
    for path, entry in tree.items():
        parent = path.rpartition("/")[0]
        if entry.kind == "directory":
            edges[parent].add(path)
        elif entry.kind == "symlink" and tree.is_directory(path):
            target = tree.resolve(path) or ""
            edges[parent].add(target)
            links.append((path, parent, target))
    if not links:
        return
    reverse: dict[str, set[str]] = defaultdict(set)
    for source, targets in edges.items():
        for target in targets:
            reverse[target].add(source)
    left = _without_dead_ends(edges, reverse) & _without_dead_ends(reverse, edges)
    yield from (path for path, source, target in links if source in left and target in left)


def _without_dead_ends(edges: Mapping[str, set[str]], reverse: Mapping[str, set[str]]) -> set[str]:
    nodes = set(edges) | set(reverse)
    ways_out = {node: len(edges.get(node, ())) for node in nodes}
    ends = [node for node, count in ways_out.items() if count == 0]
    while ends:
        node = ends.pop()
        nodes.discard(node)
        for before in reverse.get(node, ()):
            ways_out[before] -= 1
            if ways_out[before] == 0:
                ends.append(before)
    return nodes
