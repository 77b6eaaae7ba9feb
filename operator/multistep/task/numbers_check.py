"""Numbers that the reference takes and that cannot be meant: they would hide a trial that never ends, or a wrong reward."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from multistep.task.config import TaskConfig
from multistep.task.parse import CONFIG
from multistep.task.problem import Problem, shown

MAXIMUM_SECONDS = 365 * 24 * 3600
_AMOUNTS = frozenset({"cpus", "memory_mb", "storage_mb", "gpus"})


def number_problems(config: TaskConfig) -> Iterator[Problem]:
    """Refuse times that are no number of seconds up to a year, thresholds of NaN (every reward would pass) and negative amounts."""
    for path, value in _walk(config, ""):
        field = path.rpartition(".")[2]
        if not isinstance(value, float | int) or isinstance(value, bool):
            continue
        if "min_reward" in path and math.isnan(value):
            yield Problem(CONFIG, path, shown(value), "a reward cannot be compared with it: write a number")
        elif field.endswith("_sec") and (math.isnan(value) or value < 0 or value > MAXIMUM_SECONDS):
            yield Problem(CONFIG, path, shown(value), f"a time is a number of seconds from 0 to {MAXIMUM_SECONDS}")
        elif field in _AMOUNTS and value < 0:
            yield Problem(CONFIG, path, shown(value), "an amount must not be negative")


def _walk(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, BaseModel):
        for name in type(node).model_fields:
            if name != "metadata":
                yield from _walk(getattr(node, name), f"{path}.{name}" if path else name)
    elif isinstance(node, dict):
        for name, value in node.items():
            yield from _walk(value, f"{path}.{name}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _walk(value, f"{path}[{number}]")
    else:
        yield path, node
