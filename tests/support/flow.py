"""The reference's whole trials (tests/parity/vectors/flow.json): their tasks as bundles, and what two trials are compared by."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parity_vectors import load

CASES: dict[str, dict[str, Any]] = {case["name"]: case for case in load("flow")["cases"]}

DOCKERFILES = {
    "FROM debian:stable-slim\nWORKDIR /app\n",
    # All that RUN makes is the working directory that task.toml names; the operator makes that itself.
    "FROM debian\nRUN mkdir -p /srv/w\n",
}
"""The Dockerfiles for which the tests' own images stand in: their working directory is /app, and it is empty."""

DEBIAN_ONLY = ("bash", "nobody", "No such file")
"""What only Debian has of all that cases need: a program, a user, and the words of its programs. Else busybox will do, which a volume is
filled with in a moment."""

AGENT_ERRORS = {"TotallyNewError": "NonZeroAgentExitCodeError"}
"""What an agent's exception is here: a command can fail in one way only, graded and valid as a class that the reference does not know."""

Rewards = dict[str, int | float]


@dataclass
class Step:
    """What is compared of a step."""

    rewards: Rewards | None
    error: str | None
    agent_started: bool
    verifier_started: bool


@dataclass
class Outcome:
    """What is compared of a trial. Files are those below `steps/`, with their text; manifests are parsed."""

    phase: str
    rewards: Rewards | None
    valid: bool
    error: str | None = None
    steps: dict[str, Step] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)


def expected_outcome(case: dict[str, Any]) -> Outcome:
    """Return what the reference did with a case, in our terms."""
    result = case["result"]
    error = result["trial_exception"] and result["trial_exception"]["type"]
    steps = {step["name"]: _expected_step(step) for step in result["steps"]}
    assert list(steps) == result["steps_attempted"]
    outcome = Outcome(
        _expected_phase(case, steps, error),
        _expected_rewards(result["trial_rewards"]),
        result["reward_valid"],
        error,
        steps,
    )
    for path, text in result["trial_dir_files"].items():
        if path.startswith("steps/") and not path.endswith("/"):
            outcome.files[path.removeprefix("steps/")] = parsed(path, text)
    _as_mounted(outcome)
    if isinstance(case["input"]["agent"], dict):
        # The output of a command; the reference's scripted agent keeps none.
        outcome.files |= {f"{name}/agent/command.txt": "" for name, step in steps.items() if step.agent_started}
    return outcome


def _expected_step(step: dict[str, Any]) -> Step:
    error = step["exception"] and step["exception"]["type"]
    return Step(
        _expected_rewards(step["rewards"]),
        AGENT_ERRORS.get(error, error),
        step["agent_started"],
        step["verifier_started"],
    )


def _expected_rewards(rewards: dict[str, dict[str, Any]] | None) -> Rewards | None:
    return None if rewards is None else {key: number["value"] for key, number in rewards.items()}


def _expected_phase(case: dict[str, Any], steps: dict[str, Step], error: str | None) -> str:
    last = list(steps.values())[-1] if steps else None
    if error or (last and last.error and last.rewards is None):
        return "Failed"
    return "Succeeded" if len(steps) == case["input"]["task.toml"].count("[[steps]]") else "Stopped"


def _as_mounted(outcome: Outcome) -> None:
    """Of empty /logs/artifacts the reference says `ok` without mounts and `empty` with them; here they are mounts."""
    for name in outcome.steps:
        below = f"{name}/artifacts/logs/artifacts/"
        for entry in outcome.files.get(f"{name}/artifacts/manifest.json", []):
            empty = not any(path.startswith(below) for path in outcome.files)
            if entry["destination"] == "artifacts/logs/artifacts" and entry["status"] == "ok" and empty:
                entry["status"] = "empty"


def found_outcome(status: dict[str, Any], files: dict[str, Any], *, has_agent: bool) -> Outcome:
    """Return what our trial did."""
    error = status.get("error", {})
    steps = {}
    for step in status["steps"]:
        if step["phase"] != "Skipped":
            stages = [stage["name"] for stage in step.get("stages", [])]
            steps[step["name"]] = Step(
                step.get("rewards"),
                step.get("error", {}).get("type"),
                # `nop` is no program, so there is no stage to tell of it.
                "agent" in stages if has_agent else True,
                "verifierPodName" in step,
            )
    return Outcome(
        status["phase"],
        status.get("rewards"),
        status["rewardValid"],
        None if "step" in error else error.get("type"),
        steps,
        files,
    )


def parsed(path: str, text: str) -> Any:
    """Return a file's text; a manifest as what it says."""
    if path.endswith("artifacts/manifest.json"):
        return json.loads(text)
    # Where a shell names itself: which of its two paths it was started by says nothing of a trial.
    return text.replace("/usr/bin/bash:", "/bin/bash:")


def files_of_archive(encoded: str) -> dict[str, Any]:
    """Return the files of a base64 tar archive of `steps/`, by path below it."""
    files: dict[str, Any] = {}
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(encoded))) as archive:
        for member in archive:
            path = member.name.removeprefix("./").removeprefix("steps/")
            if member.issym():
                files[path] = f"@link:{member.linkname}"
            elif not member.isdir():
                content = archive.extractfile(member)
                assert content is not None, path
                files[path] = parsed(path, content.read().decode("utf-8", "backslashreplace"))
    return files


def write_task(case: dict[str, Any], directory: Path) -> Path:
    """Write a case's task into a directory, as it lay before the reference. No file is executable."""
    for path, text in {"task.toml": case["input"]["task.toml"], **case["input"]["files"]}.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        assert not text.startswith("@bytes:"), f"{path}: bytes are not decoded yet"
        if text.startswith("@link:"):
            target.symlink_to(text.removeprefix("@link:"))
        else:
            target.write_text(text, encoding="utf-8")
            target.chmod(0o644)
    return directory


def bundle(directory: Path) -> bytes:
    """Pack all of a directory, also what `multistep pack` would refuse."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for path in sorted(directory.rglob("*")):
            archive.add(path, path.relative_to(directory).as_posix(), recursive=False)
    return raw.getvalue()


def trial_spec(case: dict[str, Any], *, debian: str, busybox: str) -> dict[str, Any]:
    """Return a case's image, agent and overrides as the spec of a trial."""
    files = case["input"]["files"]
    spec: dict[str, Any] = {"agent": _agent(case["input"]["agent"])}
    texts = json.dumps([spec, case["input"], case["result"].get("trial_dir_files")])
    image = debian if any(word in texts for word in DEBIAN_ONLY) else busybox
    if (dockerfile := files.get("environment/Dockerfile")) is not None:
        assert dockerfile in DOCKERFILES, dockerfile
        spec["environment"] = {"image": image}
    elif "docker_image" in case["input"]["task.toml"]:
        # A public image, which the test's cluster cannot pull.
        spec["environment"] = {"image": image}
    for name, value in case["input"]["trial_overrides"].items():
        match name, value:
            case "mounted", True:
                pass
            case "verifier", {"disable": True}:
                spec["verifier"] = {"disabled": True}
            case "agent", {"override_timeout_sec": seconds}:
                spec["agent"]["timeoutSeconds"] = seconds
            case _:
                raise AssertionError(f"no such override here: {name} = {value}")
    return spec


def _agent(agent: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(agent, str):
        return {"name": agent}
    assert agent.keys() <= {"script", "raises"}, agent
    script = agent["script"]
    for number, error in agent.get("raises", {}).items():
        assert error in AGENT_ERRORS, error
        script += f'\n[ "$MULTISTEP_STEP_NAME" != s{number} ] || exit 1'
    run = 'exec bash -c "$0" agent "$(cat "$MULTISTEP_INSTRUCTION_FILE")"'
    return {"name": "command", "command": ["bash", "-c", run, script]}
