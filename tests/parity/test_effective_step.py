"""The `resolved` part for what a step inherits from its task. What a trial overrides, and what an environment is asked to do, is not
compared here yet (issue 4)."""

from typing import Any

import pytest
from parity_vectors import cases

from multistep.task import FileTree, effective_step, load_task
from multistep.task.tree import Entry

DELIBERATE_DIFFERENCES = {
    "verifier-timeout-task-only": "the task's [verifier] timeout_sec holds for its steps; the reference ignores it",
    "verifier-timeout-step-table-without-timeout": "as verifier-timeout-task-only",
    "agent-timeout-negative": "refused: a time is not negative",
}


def _inherited(case: Any) -> bool:
    return not case["trial_overrides"] and bool(case["result"].get("resolved")) and "[[steps]]" in case["toml"]


@pytest.mark.parametrize("case", [param for param in cases("effective_step") if _inherited(param.values[0])])
def test_step_inherits_what_the_reference_says(case: dict[str, Any]) -> None:
    files = {path: Entry("file", 0o755, b"x") for path in case["files"]}
    loaded = load_task(FileTree({"task.toml": Entry("file", 0o644, case["toml"].encode()), **files}))
    if case["name"] == "agent-timeout-negative":
        assert loaded.task is None
        return
    assert loaded.task is not None, [str(problem) for problem in loaded.problems]
    for step, expected in zip(loaded.task.steps, case["result"]["resolved"], strict=True):
        found = effective_step(loaded.task, step)
        assert found.agent_timeout_sec == expected["agent_timeout_sec"]
        assert (found.agent_user, found.verifier_user) == (expected["agent_user"], expected["verifier_user"])
        assert found.verifier_mode.value == expected["verifier_mode"]
        same = found.verifier_timeout_sec == expected["verifier_timeout_sec"]
        assert same != (case["name"] in DELIBERATE_DIFFERENCES)
