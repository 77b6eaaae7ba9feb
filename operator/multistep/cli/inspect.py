"""`multistep inspect`: the settings that hold for each step of a task."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from multistep.cli.load import read_task
from multistep.task import Problem, Step, Task, effective_step, unsupported

_TABLE_WIDTH = 160


@dataclass(frozen=True)
class Inspected:
    """What `inspect` shows."""

    task: Task
    steps: list[dict[str, Any]]
    unsupported: list[Problem]
    warnings: tuple[Problem, ...]


def inspect_task(directory: Path) -> Inspected:
    """Resolve the settings of each step of a task's directory.

    Raises:
        TaskDirectoryError: the task cannot be read.
    """
    read = read_task(directory)
    steps = [_settings(read.task, step) for step in read.task.steps]
    return Inspected(read.task, steps, unsupported(read.task), read.warnings)


def _settings(task: Task, step: Step) -> dict[str, Any]:
    found = effective_step(task, step)
    return {
        "index": step.index,
        "name": step.name,
        "agentTimeoutSeconds": found.agent_timeout_sec,
        "verifierTimeoutSeconds": found.verifier_timeout_sec,
        "agentUser": found.agent_user,
        "verifierUser": found.verifier_user,
        "verifierMode": found.verifier_mode.value,
        "minReward": step.config.min_reward,
        "setup": step.has_setup,
        "healthcheck": found.healthcheck.command if found.healthcheck else None,
        "tests": step.test_script,
        "solution": step.solution,
    }


def _document(inspected: Inspected) -> dict[str, Any]:
    config = inspected.task.config
    return {
        "task": inspected.task.name,
        "digest": inspected.task.digest,
        "image": config.environment.docker_image,
        "workdir": config.environment.workdir,
        "rewardStrategy": config.multi_step_reward_strategy or "mean",
        "steps": inspected.steps,
        "unsupported": [str(problem) for problem in inspected.unsupported],
    }


def _json(inspected: Inspected) -> str:
    return json.dumps(_document(inspected), indent=2, ensure_ascii=False) + "\n"


def _yaml(inspected: Inspected) -> str:
    document = json.loads(_json(inspected))
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


_COLUMNS = {
    "#": "index",
    "Step": "name",
    "Agent": "agentTimeoutSeconds",
    "Verifier": "verifierTimeoutSeconds",
    "Agent user": "agentUser",
    "Verifier user": "verifierUser",
    "Mode": "verifierMode",
    "min_reward": "minReward",
    "setup.sh": "setup",
    "Healthcheck": "healthcheck",
    "Tests": "tests",
    "Solution": "solution",
}


def _table(inspected: Inspected) -> str:
    document = _document(inspected)
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for step in inspected.steps:
        table.add_row(*(_cell(name, step[key]) for name, key in _COLUMNS.items()))
    text = io.StringIO()
    console = Console(file=text, width=_TABLE_WIDTH, highlight=False, markup=False)
    for key in ("task", "image", "workdir", "rewardStrategy"):
        console.print(f"{key}: {document[key] if document[key] is not None else 'not set'}")
    console.print(table)
    for problem in document["unsupported"]:
        console.print(f"cannot be run: {problem}")
    return text.getvalue()


def _cell(column: str, value: Any) -> str:
    if column in ("Agent", "Verifier"):
        return "no limit" if value is None else f"{value:g} s"
    if isinstance(value, bool):
        return "yes" if value else "-"
    return "-" if value is None else str(value)


RENDERERS: dict[str, Callable[[Inspected], str]] = {"table": _table, "json": _json, "yaml": _yaml}
