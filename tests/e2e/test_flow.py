"""Every whole trial that was measured from the reference, on real pods: steps, rewards, errors, and all files that are left."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from support.flow import (
    CASES,
    Outcome,
    bundle,
    expected_outcome,
    files_of_archive,
    found_outcome,
    trial_spec,
    write_task,
)

from .conftest import BUSYBOX, DEBIAN, ROOT, Namespace
from .flow_differences import CANNOT_HAPPEN, DELIBERATE_DIFFERENCES, NOT_SUPPORTED, REFUSED


def parameters() -> list[Any]:
    return [
        pytest.param(
            name,
            id=name,
            marks=[pytest.mark.skip(reason=CANNOT_HAPPEN[name])] if name in CANNOT_HAPPEN else [],
        )
        for name in CASES
    ]


@pytest.mark.parametrize("name", parameters())
def test_trial_ends_as_in_the_reference(name: str, namespace: Namespace, tmp_path: Path) -> None:
    case, difference = CASES[name], DELIBERATE_DIFFERENCES.get(name)
    status = run_case(case, namespace, tmp_path)
    if difference and difference.like:
        case = CASES[difference.like]
    if not case["result"]["created"]:
        assert_refused(namespace, status, *(case["result"]["path_mentioned"] or [REFUSED[name]]))
    elif name in NOT_SUPPORTED:
        assert_refused(namespace, status, NOT_SUPPORTED[name])
    elif difference and difference.refused:
        assert_refused(namespace, status, difference.refused)
    else:
        assert "workspace" in status, f"the task was refused: {status['message']}"
        expected = expected_outcome(case)
        if difference and difference.change:
            difference.change(expected)
        files = read_files(namespace, status)
        error = status.get("error", {})
        assert not error.get("type", "").endswith("PodError"), f"a pod without a report: {error}"
        assert_same(found_outcome(status, files, has_agent=case["input"]["agent"] != "nop"), expected)


def run_case(case: dict[str, Any], namespace: Namespace, directory: Path) -> dict[str, Any]:
    """Run a case's trial; return its last status."""
    packed = bundle(write_task(case, directory))
    namespace.core.create_namespaced_config_map(
        namespace.name,
        {"metadata": {"name": "task"}, "binaryData": {"task.tar.gz": base64.b64encode(packed).decode()}},
    )
    namespace.create(task={"configMap": {"name": "task"}}, **trial_spec(case, debian=DEBIAN, busybox=BUSYBOX))
    return namespace.finish(240)


def read_files(namespace: Namespace, status: dict[str, Any]) -> dict[str, Any]:
    """Return the files that a trial left on its volume, below `steps/`."""
    script = "tar -C /volume/trial -cf - steps | base64"
    return files_of_archive(namespace.read_volume(script, status["workspace"]["claimName"]))


def assert_same(found: Outcome, expected: Outcome) -> None:
    assert list(found.steps) == list(expected.steps)
    assert found == expected
    # 1 is 1.0 to Python. That a whole number is a float is lost in JSON; an integer has to stay one.
    pairs = [(found.rewards, expected.rewards)]
    pairs += [(step.rewards, expected.steps[name].rewards) for name, step in found.steps.items()]
    for ours, theirs in pairs:
        for key, value in (theirs or {}).items():
            assert ours is not None and (type(ours[key]) is int or type(value) is float), key


def assert_refused(namespace: Namespace, status: dict[str, Any], *words: str) -> None:
    assert (status["phase"], status["reason"], status.get("error", {}).get("type")) == (
        "Failed",
        "TaskInvalid",
        "TaskInvalidError",
    )
    (condition,) = [entry for entry in status["conditions"] if entry["type"] == "TaskValid"]
    assert condition["status"] == "False"
    for word in words:
        assert word in condition["message"]
    assert "rewards" not in status and not namespace.pods()


def test_tables_name_cases_and_rows_that_there_are() -> None:
    tables = (DELIBERATE_DIFFERENCES, NOT_SUPPORTED, CANNOT_HAPPEN)
    assert len(CASES) == 76
    assert {*CASES} >= {*REFUSED, *(name for table in tables for name in table)}
    assert len({name for table in tables for name in table}) == sum(len(table) for table in tables)
    lines = (ROOT / "docs/harbor-compatibility.md").read_text().splitlines()
    rows = {line.split(" | ")[0].removeprefix("| ") for line in lines}
    assert rows >= {row for difference in DELIBERATE_DIFFERENCES.values() for row in difference.rows}
