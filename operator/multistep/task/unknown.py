"""Keys of task.toml that nothing reads. The reference skips them in silence; here they are named, with what was probably meant."""

from __future__ import annotations

import difflib
import types
import typing
from typing import Any

from pydantic import BaseModel

from multistep.task.config import TaskConfig
from multistep.task.problem import Problem, shown

_ACCEPTED = {"TaskConfig": {"version"}, "EnvironmentConfig": {"memory", "storage"}}
_DEEPEST = 8


def unknown_keys(document: dict[str, Any]) -> list[Problem]:
    """Return a warning for each key that no field of the format has."""
    found: list[Problem] = []
    _walk(document, TaskConfig, "", found)
    return found


def _walk(document: dict[str, Any], model: type[BaseModel], path: str, found: list[Problem]) -> None:
    known = model.model_fields.keys() | _ACCEPTED.get(model.__name__, set())
    for key, value in document.items():
        here = f"{path}.{key}" if path else key
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            advice = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(sorted(known))}"
            found.append(Problem("task.toml", here, shown(value), f"nothing reads this key; {advice}"))
            continue
        if key in model.model_fields:
            for inner in _models(model.model_fields[key].annotation):
                _descend(value, inner, here, found)


def _descend(value: Any, model: type[BaseModel], path: str, found: list[Problem]) -> None:
    if isinstance(value, dict):
        _walk(value, model, path, found)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            if isinstance(item, dict):
                _walk(item, model, f"{path}[{number}]", found)


def _models(annotation: Any, depth: int = 0) -> list[type[BaseModel]]:
    """Return the models within an annotation such as `list[StepConfig] | None`; what is a free table has none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if depth > _DEEPEST or typing.get_origin(annotation) not in (list, types.UnionType, typing.Union):
        return []
    return [model for inner in typing.get_args(annotation) for model in _models(inner, depth + 1)]
