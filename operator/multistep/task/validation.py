"""From a document to a configuration, or to as much of one as the rest of a task can be checked with.

Whoever mends a task wants to know everything that is wrong with it. Pydantic reports all faults of a document at once, but gives no
configuration then, with which the task's files could be compared. So the faulty values are taken out and the rest is read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from multistep.task.config import TaskConfig
from multistep.task.parse import CONFIG
from multistep.task.problem import Problem, shown
from multistep.task.step_name import collision_key

_ROUNDS = 4
"""Taking values out can bring the next faults to light; no known document needs more than two rounds."""

_Path = tuple[int | str, ...]


@dataclass(frozen=True)
class Validated:
    """A document as a configuration.

    Attributes:
        config: the configuration. With problems it lacks what is faulty; None where too little is left.
        problems: all faults.
        unnamed_steps: placeholders for names that cannot be used; no directory is to be looked for.
        steps_known: whether the list of steps as such could be read.
    """

    config: TaskConfig | None
    problems: tuple[Problem, ...] = ()
    unnamed_steps: frozenset[str] = frozenset()
    steps_known: bool = True


def validate(document: dict[str, Any]) -> Validated:
    """Validate a document, and report all of its faults."""
    try:
        return Validated(TaskConfig.model_validate(document))
    except ValidationError as error:
        return _salvage(document, error)


def _salvage(document: dict[str, Any], error: ValidationError) -> Validated:
    problems: list[Problem] = []
    removed: set[_Path] = set()
    rest = deepcopy(document)
    for _ in range(_ROUNDS):
        errors = _without_rivals([(_path(item, document), item) for item in error.errors(include_url=False)])
        # What is faulty only because something was taken out is no fault of the task.
        problems += [_problem(path, item) for path, item in errors if not _is_consequence(path, removed)]
        removed |= _take_out(rest, [path for path, _ in errors])
        try:
            config = TaskConfig.model_validate(rest)
        except ValidationError as next_error:
            error = next_error
            continue
        unnamed = frozenset(step.name for step in config.steps or [] if step.name.startswith(_PLACEHOLDER))
        return Validated(config, tuple(problems), unnamed, ("steps",) not in removed)
    return Validated(None, tuple(problems))


def _path(item: ErrorDetails, document: Any) -> _Path:
    """Return where a fault is, without the names of a union's members, which pydantic adds and which are no keys."""
    result: list[int | str] = []
    node = document
    location = item["loc"]
    for number, part in enumerate(location):
        missing = item["type"] == "missing" and number == len(location) - 1
        if isinstance(part, int):
            result.append(part)
            node = node[part] if isinstance(node, list) and part < len(node) else None
        elif isinstance(node, dict) and (part in node or missing):
            result.append(part)
            node = node.get(part)
    return tuple(result)


def _without_rivals(errors: list[tuple[_Path, ErrorDetails]]) -> list[tuple[_Path, ErrorDetails]]:
    """Leave out that a table is no text, where what is wrong within the table is reported, too: a table was meant."""
    paths = [path for path, _ in errors]
    return [
        (path, item)
        for path, item in errors
        if not (
            item["type"] == "string_type"
            and isinstance(item["input"], dict)
            and any(len(other) > len(path) and other[: len(path)] == path for other in paths)
        )
    ]


def _problem(path: _Path, item: ErrorDetails) -> Problem:
    message = " ".join(item["msg"].removeprefix("Value error, ").split())
    if item["type"] in ("model_type", "dict_type"):
        message = "input should be a table"
    found = None if item["type"] == "missing" or isinstance(item["input"], dict) else shown(item["input"])
    return Problem(CONFIG, toml_key(path) or None, found, message[:1].lower() + message[1:])


def toml_key(path: Iterable[int | str]) -> str:
    """Write a path as in `steps[1].agent.timeout_sec`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _is_consequence(path: _Path, removed: set[_Path]) -> bool:
    if path == ("steps",):
        # Names that collide: those that were replaced never do.
        return False
    return any(path == taken[: len(path)] or taken == path[: len(taken)] for taken in removed)


_PLACEHOLDER = "unusable-name-\u2063"
"""Stands for a step's name that cannot be used. The invisible separator keeps it apart from whatever a task may call a step."""


def _take_out(rest: dict[str, Any], paths: list[_Path]) -> set[_Path]:
    """Take faulty values out of a document; steps stay where they are, for their positions are part of other problems' keys."""
    # Decided for all before anything is taken: what is gone would make the next one reach further up.
    targets = {_target(rest, path) for path in paths}
    for target in sorted(targets, key=len, reverse=True):
        steps = rest.get("steps")
        if len(target) >= 2 and target[0] == "steps" and isinstance(target[1], int) and isinstance(steps, list):
            index = target[1]
            if len(target) == 2:
                steps[index] = {"name": f"{_PLACEHOLDER}{index}"}
                continue
            if target[2:] == ("name",):
                steps[index]["name"] = f"{_PLACEHOLDER}{index}"
                continue
        if target == ("steps",) and isinstance(steps, list):
            _rename_colliding(steps)
            continue
        _delete(rest, target)
    return targets - ({("steps",)} if isinstance(rest.get("steps"), list) else set())


def _target(rest: dict[str, Any], path: _Path) -> _Path:
    """Return what to take out: the value itself, else the nearest table's entry that holds it."""
    if not path:
        # Raised by the task as a whole: it is the artifacts that are read only then.
        return ("artifacts",)
    node: Any = rest
    target: _Path = ()
    for number, part in enumerate(path):
        inside = isinstance(node, dict) and part in node
        within = isinstance(node, list) and isinstance(part, int) and part < len(node)
        if path[0] == "steps" and number == 2 and part == "name":
            return path[:3]
        if not inside and not within:
            break
        if inside or (number == 1 and path[0] == "steps"):
            target = path[: number + 1]
        node = node[part]
    return target or path[:1]


def _delete(rest: dict[str, Any], target: _Path) -> None:
    node: Any = rest
    for part in target[:-1]:
        node = node[part]
    if isinstance(node, dict):
        node.pop(target[-1], None)


def _rename_colliding(steps: list[Any]) -> None:
    seen: set[str] = set()
    for index, step in enumerate(steps):
        if isinstance(step, dict) and isinstance(step.get("name"), str):
            key = collision_key(step["name"])
            if key in seen:
                step["name"] = f"{_PLACEHOLDER}{index}"
            seen.add(key)
