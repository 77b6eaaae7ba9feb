"""Environment variables of the containers: the task's env tables, with `${VAR}` taken from `spec.env`.

A value from a Secret stays a reference: the kubelet reads it, the operator never does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from multistep.api.pod_template import EnvVar
from multistep.task import EnvReference, Problem, parse_env_value

EnvEntry = dict[str, Any]


def literal(text: str) -> str:
    """Escape text for a container's command, args and env values, where Kubernetes expands `$(NAME)` and `$$`."""
    return text.replace("$", "$$")


def entry(variable: EnvVar, name: str | None = None) -> EnvEntry:
    """Return a user's variable as it stands in a container, under another name if one is given."""
    result: EnvEntry = {"name": name or variable.name}
    if variable.value_from is not None:
        result["valueFrom"] = variable.value_from.model_dump(by_alias=True, exclude_none=True, mode="json")
    else:
        result["value"] = literal(variable.value or "")
    return result


def resolve(template: Mapping[str, str], provided: Sequence[EnvVar]) -> list[EnvEntry]:
    """Resolve an env table of the task; a reference that nobody provides is left out (`unresolved` reports it)."""
    by_name = {variable.name: variable for variable in provided}
    result = []
    for name, text in template.items():
        value = parse_env_value(text)
        if not isinstance(value, EnvReference):
            result.append({"name": name, "value": literal(value)})
        elif value.name in by_name:
            result.append(entry(by_name[value.name], name))
        elif value.default is not None:
            result.append({"name": name, "value": literal(value.default)})
    return result


def unresolved(key: str, template: Mapping[str, str], provided: Sequence[EnvVar]) -> list[Problem]:
    """Return a problem for each `${VAR}` of an env table that neither `spec.env` nor a default provides."""
    names = {variable.name for variable in provided}
    result = []
    for name, text in template.items():
        value = parse_env_value(text)
        if isinstance(value, EnvReference) and value.default is None and value.name not in names:
            result.append(
                Problem(
                    file="task.toml",
                    key=f"{key}.{name}",
                    found=repr(text),
                    message=f"nobody provides the variable {value.name}: add it to spec.env of the trial, "
                    f"or write ${{{value.name}:-default}}",
                )
            )
    return result


def merged(*layers: Sequence[EnvEntry]) -> list[EnvEntry]:
    """Merge lists of variables; the last of a name wins."""
    by_name = {variable["name"]: variable for layer in layers for variable in layer}
    return list(by_name.values())
