"""Where a whole trial ends differently here: each case with the rows of docs/harbor-compatibility.md that say so, and what happens instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.flow import Outcome


@dataclass(frozen=True)
class Difference:
    """What is different, by the first cells of its rows; `change` makes of the reference's outcome what is expected here."""

    rows: tuple[str, ...]
    change: Callable[[Outcome], None] | None = None
    like: str = ""
    """A case that ends as this one does here, where the reference refuses this one."""
    refused: str = ""
    """A word of the sentence with which the task is refused, where it is refused."""


def _everything(*changes: Callable[[Outcome], None]) -> Callable[[Outcome], None]:
    def change(outcome: Outcome) -> None:
        for one in changes:
            one(outcome)

    return change


def _file(path: str, text: Any) -> Callable[[Outcome], None]:
    def change(outcome: Outcome) -> None:
        assert outcome.files.get(path) != text, f"{path} is no difference"
        outcome.files[path] = text

    return change


def _replaced(path: str, old: str, new: str) -> Callable[[Outcome], None]:
    def change(outcome: Outcome) -> None:
        assert old in outcome.files[path], f"{path} is no difference"
        outcome.files[path] = outcome.files[path].replace(old, new)

    return change


def _error(step: str, error: str) -> Callable[[Outcome], None]:
    def change(outcome: Outcome) -> None:
        outcome.steps[step].error = error

    return change


def _invalid(outcome: Outcome) -> None:
    assert outcome.valid
    outcome.valid = False


def _no_solution(*steps: str) -> Callable[[Outcome], None]:
    """A listing of what the verifier sees, without the solution."""
    return _everything(
        *(_replaced(f"{step}/verifier/seen.txt", "[/solution]\nsolve.sh\n", "[/solution]\n") for step in steps)
    )


def _hung_healthcheck(outcome: Outcome) -> None:
    outcome.error, outcome.rewards = None, {"reward": 1}
    outcome.steps["s2"].error = "HealthcheckError"


def _own_solution_after_timeout_zero(outcome: Outcome) -> None:
    outcome.rewards = {"reward": 0.5}
    outcome.steps["s2"].rewards = {"reward": 1}
    outcome.files["s2/verifier/reward.txt"] = "1\n"
    outcome.files["s2/verifier/test-stdout.txt"] = ""


def _oracle_that_did_nothing(outcome: Outcome) -> None:
    """The step is not graded, so it is the last one."""
    outcome.phase, outcome.rewards, outcome.valid = "Failed", None, False
    del outcome.steps["s2"]
    step = outcome.steps["s1"]
    step.rewards, step.error, step.agent_started, step.verifier_started = None, "SolutionNotFoundError", False, False
    outcome.files = {path: text for path, text in outcome.files.items() if path.startswith("s1/artifacts/")}


def _task_timeout_holds(outcome: Outcome) -> None:
    outcome.phase, outcome.rewards, outcome.valid = "Failed", None, False
    outcome.steps["s1"].rewards, outcome.steps["s1"].error = None, "VerifierTimeoutError"
    del outcome.files["s1/verifier/reward.txt"]


def _skipped_artifact(outcome: Outcome) -> None:
    """The manifest is the record, whatever a task wants to put in its place."""
    outcome.files.pop("s1/artifacts/manifest.json/x", None)
    under = "s1/artifacts/manifest.json" not in outcome.files
    common: dict[str, Any] = {"service": None, "exclude": []}
    outcome.files["s1/artifacts/manifest.json"] = [
        {"source": "/logs/artifacts", "destination": "artifacts/logs/artifacts", "type": "directory", "status": "empty"} | common,
        {"source": "/app/fake", "destination": f"artifacts/manifest.json{'/x' if under else ''}", "type": "directory", "status": "skipped"} | common,
        {"source": "/app/real.txt", "destination": "artifacts/app/real.txt", "type": "file", "status": "ok"} | common,
    ]  # fmt: skip


def _cannot_remove_verifier_directory(outcome: Outcome) -> None:
    outcome.steps["s1"].error = "RewardFileNotFoundError"


def _cannot_remove_log_directories(outcome: Outcome) -> None:
    for step in outcome.steps:
        (entry,) = outcome.files[f"{step}/artifacts/manifest.json"]
        entry["type"], entry["status"] = "directory", "empty"


_SOLUTION = "`/solution`"
_MOUNTS = "deleting `/logs/agent`, `/logs/artifacts` or `/logs/verifier`"
_MANIFEST = "artifact whose destination is `./manifest.json` or lies below `manifest.json`"
_WRONG_KIND = "instruction that is a directory or no UTF-8, `test.sh` that is a directory"
_ORACLE_INDEX = "oracle after a timeout of 0"

DELIBERATE_DIFFERENCES = {
    "what-verifier-sees-mounted": Difference((_SOLUTION,), _no_solution("s1", "s2")),
    "setup-ok-and-environment": Difference((_SOLUTION,), _no_solution("s2")),
    "tests-overlay-shared-and-step": Difference((_SOLUTION,), _no_solution("s1", "s2")),
    "tests-step-files-do-not-leak": Difference((_SOLUTION,), _no_solution("s2")),
    "harborignore-in-tests": Difference((_SOLUTION,), _no_solution("s1")),
    "persistence-across-steps-mounted": Difference(
        (_SOLUTION,),
        _everything(
            _replaced("s1/verifier/persist.txt", "verifier1 sees /solution/p\n", ""),
            _replaced("s2/verifier/persist.txt", "agent2 sees /solution/p\n", ""),
        ),
    ),
    "tests-visible-to-next-agent": Difference(
        ("`/tests`",),
        _file(
            "s2/verifier/agent-saw",
            "ls: /tests: No such file or directory\n/logs/verifier:\n",
        ),
    ),
    "setup-fails-step2": Difference(
        ("error type of a failing `setup.sh`", "validity of a reward after a crash in a later step"),
        _everything(_error("s2", "SetupError"), _invalid),
    ),
    "healthcheck-command-timeout": Difference(
        ("a hung healthcheck command", "an exception that escapes a step"), _hung_healthcheck
    ),
    "reward-json-scalar-step1": Difference(
        ("reward.json that is a bare number, is nested too deeply, or is a directory",),
        _error("s1", "VerifierOutputParseError"),
    ),
    "agent-timeout-zero": Difference((_ORACLE_INDEX,), _own_solution_after_timeout_zero),
    "oracle-step-index-after-timeout-zero": Difference(
        (_ORACLE_INDEX,),
        _everything(
            _file("s2/verifier/outs", "/app/out2\n"),
            _file("s3/verifier/outs", "/app/out2\n/app/out3\n"),
        ),
    ),
    "step-solution-dir-without-solve": Difference(
        ("error type of an oracle without a solution",), _oracle_that_did_nothing
    ),
    "verifier-task-timeout-ignored": Difference(("task-level `[verifier] timeout_sec`",), _task_timeout_holds),
    "collect-hooks": Difference(
        ("`/logs/artifacts` without mounts",), _file("s2/artifacts/logs/artifacts/hook.txt", "task\n")
    ),
    "artifact-destination-shadows-manifest": Difference((_MANIFEST,), _skipped_artifact),
    "artifact-destination-under-manifest": Difference((_MANIFEST,), _skipped_artifact),
    "verifier-disabled-no-tests-oracle": Difference(
        ("the oracle without tests, where nothing is verified",), like="verifier-disabled"
    ),
    "verifier-env-template-unset": Difference(("variable that nobody provides",), refused="PARITY_UNSET"),
    "step-removes-logs-verifier-dir": Difference((_MOUNTS,), _cannot_remove_verifier_directory),
    "agent-removes-logs-dirs": Difference((_MOUNTS,), _cannot_remove_log_directories),
    "instruction-is-directory": Difference((_WRONG_KIND,), refused="steps/s1/instruction.md"),
    "test-sh-is-directory": Difference((_WRONG_KIND,), refused="steps/s1/tests/test.sh"),
}

NOT_SUPPORTED = {
    "single-step-task-baseline": "a task without [[steps]] cannot be run yet",
}
"""Tasks that are refused, with words of the sentence. The generic comparison takes over when an entry goes."""

REFUSED = {
    "env-template-unset": "PARITY_UNSET",
    "environment-dir-missing": "the task names no image",
}
"""What the sentence names where the reference's error names no file of the task."""

CANNOT_HAPPEN = {
    "agent-error-graded": "an agent that is a command cannot raise ApiRateLimitError",
    "agent-error-not-graded": "an agent that is a command cannot raise AuthenticationError",
    "agent-setup-error": "an agent that is a command has no set-up that could raise AgentSetupTimeoutError",
    "install-only": "there is no trial that only sets an agent up: agents come in images",
}
