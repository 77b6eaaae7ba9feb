"""From the bytes of task.toml to a document, with what must be ruled out before anything looks at it."""

from __future__ import annotations

from typing import Any

import tomli

from multistep.task.problem import Problem
from multistep.task.tree import FileTree

CONFIG = "task.toml"

MAXIMUM_STEPS = 500
"""The status of a trial has an entry per step, and an object of Kubernetes has about 1.5 MB."""

_MAXIMUM_BYTES = 1024 * 1024
"""What the parsed task is kept in, a ConfigMap, has no room for more."""

_DEEPEST = 64
"""Far more than any task has, and far less than what JSON writers and recursive walks take."""


def parse(tree: FileTree) -> tuple[dict[str, Any] | None, list[Problem]]:
    """Parse task.toml. Either there is a document, or there are problems."""
    document, fault = _parse(tree)
    return document, [] if fault is None else [fault]


def _parse(tree: FileTree) -> tuple[dict[str, Any] | None, Problem | None]:
    if not tree.is_file(CONFIG):
        return None, _fault("there is no such file: a task's directory has task.toml at its top")
    raw = tree.read(CONFIG)
    if len(raw) > _MAXIMUM_BYTES:
        return None, _fault(f"it has {len(raw)} bytes, {_MAXIMUM_BYTES} is the limit: move long texts to files")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return None, _fault(f"it is not UTF-8 text (byte {error.start}): save it as UTF-8")
    try:
        # Read as text files are: bare carriage returns end a line, too.
        document = tomli.loads(text.replace("\r\n", "\n").replace("\r", "\n"))
    except (ValueError, RecursionError) as error:
        # ValueError, not only its TOMLDecodeError: an integer of thousands of digits raises the former.
        advice = "; the file starts with a byte order mark: save it without" if text.startswith("\ufeff") else ""
        return None, _fault(f"it is no TOML: {error}{advice}")
    if _is_deep(document):
        return None, _fault(f"its tables are nested more than {_DEEPEST} levels deep")
    steps = document.get("steps")
    if isinstance(steps, list) and len(steps) > MAXIMUM_STEPS:
        advice = f"a task may have {MAXIMUM_STEPS} steps: split it"
        return None, Problem(CONFIG, "steps", f"{len(steps)} steps", advice)
    return document, None


def _fault(message: str) -> Problem:
    return Problem(CONFIG, None, None, message)


def _is_deep(document: dict[str, Any]) -> bool:
    level: list[Any] = [document]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for node in level:
            inner += node.values() if isinstance(node, dict) else node
        level = [node for node in inner if isinstance(node, dict | list)]
        if not level:
            return False
    return True
