"""Keys of task.toml that nothing reads. The reference skips them in silence; here they are named, with what was probably meant."""

from __future__ import annotations

import difflib
import types
import typing
from typing import Any

from pydantic import BaseModel

from multistep.task.config import TaskConfig
from multistep.task.parse import CONFIG
from multistep.task.problem import Problem, shown

_ACCEPTED = {"TaskConfig": {"version"}, "EnvironmentConfig": {"memory", "storage"}}
_DEEPEST = 8
_MOST_WARNINGS = 50
_LONGEST_KEY = 80


def unknown_keys(document: dict[str, Any]) -> list[Problem]:
    """Return a warning for each key that no field of the format has; past the fiftieth only that there are more."""
    found: list[Problem] = []
    _walk(document, TaskConfig, "", found)
    if len(found) > _MOST_WARNINGS:
        found[_MOST_WARNINGS:] = [Problem(CONFIG, None, None, "nothing reads some more of its keys")]
    return found


def ignored_settings(config: TaskConfig) -> list[Problem]:
    """Return a warning for each setting that a verifier's environment may have and nobody acts upon, in the reference neither."""
    tables = [("verifier", config.verifier)]
    tables += [(f"steps[{number}].verifier", step.verifier) for number, step in enumerate(config.steps or [])]
    return [
        Problem(CONFIG, f"{key}.environment.{name}", None, "nothing acts upon this in a verifier's environment")
        for key, verifier in tables
        for name in ("healthcheck", "mcp_servers", "skills_dir")
        if verifier.environment is not None and getattr(verifier.environment, name)
    ]


def _walk(document: dict[str, Any], model: type[BaseModel], path: str, found: list[Problem]) -> None:
    known = model.model_fields.keys() | _ACCEPTED.get(model.__name__, set())
    for key, value in document.items():
        if len(found) > _MOST_WARNINGS:
            return
        here = f"{path}.{key[:_LONGEST_KEY]}" if path else key[:_LONGEST_KEY]
        if key not in known:
            found.append(Problem(CONFIG, here, shown(value), f"nothing reads this key; {_advice(key, model, known)}"))
        elif key in model.model_fields:
            for inner in _models(model.model_fields[key].annotation):
                _descend(value, inner, here, found)


def _advice(key: str, model: type[BaseModel], known: set[str]) -> str:
    # First, because timeout_sec of a step is not misspelt but one table too high.
    below = [
        f"{name}.{key}"
        for name, field in model.model_fields.items()
        if any(key in inner.model_fields for inner in _tables(field.annotation))
    ]
    close = difflib.get_close_matches(key[:_LONGEST_KEY], known, 1)
    if close:
        return f"did you mean {close[0]}?"
    return f"did you mean {' or '.join(below)}?" if below else f"known keys: {', '.join(sorted(known))}"


def _descend(value: Any, model: type[BaseModel], path: str, found: list[Problem]) -> None:
    if isinstance(value, dict):
        _walk(value, model, path, found)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            if isinstance(item, dict):
                _walk(item, model, f"{path}[{number}]", found)


def _tables(annotation: Any) -> list[type[BaseModel]]:
    """Return the models of an annotation that is a table, not a list of tables."""
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        return [model for inner in typing.get_args(annotation) for model in _tables(inner)]
    return [annotation] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []


def _models(annotation: Any, depth: int = 0) -> list[type[BaseModel]]:
    """Return the models within an annotation such as `list[StepConfig] | None`; what is a free table has none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if depth > _DEEPEST or typing.get_origin(annotation) not in (list, types.UnionType, typing.Union):
        return []
    return [model for inner in typing.get_args(annotation) for model in _models(inner, depth + 1)]
