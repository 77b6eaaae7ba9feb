import base64
import json
from typing import Any

import pytest
from parity_vectors import cases, load
from pydantic import ValidationError

from multistep.task import (
    Entry,
    EnvironmentConfig,
    FileTree,
    StepConfig,
    Task,
    TaskConfig,
    effective_step,
    load_task,
    unsupported,
)
from multistep.task.artifacts import collisions
from multistep.task.parse import parse

# Tasks that the reference accepts and we refuse, and why. docs/harbor-compatibility.md has a row for each group.
_GROUPS = {
    "a time that is no usable number of seconds (NaN, infinite, negative, beyond a year) hides a trial that never ends": """
        agent-timeout-nan agent-timeout-neg-inf agent-timeout-huge
        verifier-timeout-nan verifier-timeout-inf verifier-timeout-neg-inf verifier-timeout-negative verifier-timeout-huge
        step-agent-timeout-nan step-agent-timeout-inf step-agent-timeout-neg-inf step-agent-timeout-negative
        step-verifier-timeout-nan step-verifier-timeout-inf step-verifier-timeout-neg-inf step-verifier-timeout-negative
        step-verifier-timeout-huge
        build-timeout-nan build-timeout-neg-inf build-timeout-negative build-timeout-huge
        collect-timeout-negative healthcheck-nan
    """,
    "a negative amount of CPU, disk or GPUs is a mistake": "cpus-negative storage-mb-negative gpus-negative",
    "every reward would pass a threshold of NaN": "min-reward-nan min-reward-object-nan",
    "a test that cannot be run, or an instruction that cannot be read, would become a graded error of the agent": """
        dir-step-test-sh-is-dir dir-step-instruction-invalid-utf8
    """,
}
DELIBERATE_DIFFERENCES = {name: reason for reason, names in _GROUPS.items() for name in names.split()}

# With verification disabled the reference does not look for instructions and directories of steps either; the missing instruction
# becomes an error of the agent then. Here it stays a problem of the task.
INSTRUCTION_NEEDED_ANYWAY = {
    "dir-step-instruction-missing",
    "dir-step-instruction-wrong-case",
    "dir-step-is-file",
    "dir-step-name-case-differs",
}

# Windows is refused as a whole, with a sentence, by `unsupported`; its scripts are not looked for, neither the right nor the wrong ones.
WINDOWS = {"os-windows", "os-windows-with-bat-tests"}

# tomli reads TOML 1.1, the reference's parser 1.0: a table in several lines is accepted here.
TOML_1_1 = {"toml-11-inline-newline"}


def _tree(case: dict[str, Any]) -> FileTree:
    raw = (
        base64.b64decode(case["toml_base64"])
        if "toml_base64" in case
        else case["toml"].encode("utf-8", "surrogatepass")
    )
    entries: dict[str, Entry] = {"task.toml": Entry("file", 0o644, raw)}
    files = case["files"]
    if files == "default-layout":
        files = _default_layout(raw)
    for path, content in files.items():
        if content is None:
            entries.pop(path, None)
        elif isinstance(content, dict):
            entries[path] = Entry("file", 0o644, base64.b64decode(content["base64"]))
        elif path.endswith("/"):
            entries[path.rstrip("/")] = Entry("directory", 0o755)
        elif content.startswith("@link:"):
            entries[path] = Entry("symlink", 0o777, target=content.removeprefix("@link:"))
        else:
            entries[path] = Entry("file", 0o644, content.encode("utf-8", "surrogatepass"))
    return FileTree(entries)


def _default_layout(raw: bytes) -> dict[str, str]:
    """The layout that the vectors call "default": files for each valid declared step, else for a task of one step."""
    files = {"environment/Dockerfile": "FROM scratch\n"}
    document, _ = parse(FileTree({"task.toml": Entry("file", 0o644, raw)}))
    steps = (document or {}).get("steps")
    names = [step.get("name") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    if not names:
        return {**files, "instruction.md": "do\n", "tests/test.sh": "true\n"}
    for name in names:
        if isinstance(name, str) and name and "/" not in name and "\0" not in name and name not in (".", ".."):
            files[f"steps/{name}/instruction.md"] = "do\n"
            files[f"steps/{name}/tests/test.sh"] = "true\n"
    return files


def _normalized(config: TaskConfig) -> dict[str, Any]:
    """Return what differs from the defaults, in the form of the vectors."""
    return config.model_dump(exclude_defaults=True)


def _config(case: dict[str, Any]) -> TaskConfig | None:
    document, _problems = parse(_tree(case))
    if document is None:
        return None
    try:
        return TaskConfig.model_validate(document)
    except ValidationError:
        return None


@pytest.mark.parametrize("case", cases("task_config"))
def test_configuration_is_accepted_and_normalized_as_by_the_reference(case: dict[str, Any]) -> None:
    config = _config(case)
    assert (config is not None) == (case["config_accept"] or case["name"] in TOML_1_1)
    if case["name"] in TOML_1_1:
        return
    if config is not None:
        expected = case["normalized"]
        assert _comparable(_normalized(config)) == _comparable(expected)
        found = len(collisions(config.artifacts))
        found += sum(len(collisions([*config.artifacts, *step.artifacts])) for step in config.steps or [])
        assert found == case["artifact_collisions"]


def _comparable(node: Any) -> str:
    """Compare as text: NaN is not equal to itself."""
    return json.dumps(_canonical(node), sort_keys=True, default=str)


def _canonical(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _canonical(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_canonical(value) for value in node]
    if isinstance(node, float) and node not in (float("inf"), float("-inf")) and node == node and node.is_integer():
        return int(node)
    return node


def _has_field_error(case: dict[str, Any]) -> bool:
    return case.get("config_error", {}).get("class") == "ValidationError"


@pytest.mark.parametrize("case", [param for param in cases("task_config") if _has_field_error(param.values[0])])
def test_error_is_found_at_the_field_that_the_reference_names(case: dict[str, Any]) -> None:
    error = case["config_error"]
    document, _ = parse(_tree(case))
    with pytest.raises(ValidationError) as caught:
        TaskConfig.model_validate(document)
    found = []
    for item in caught.value.errors():
        parts = [str(part) for part in item["loc"]]
        found.append((".".join(part for part in parts if not part.startswith("function-")), item["type"]))
    assert (error["error_field"], error["error_type"]) in found


@pytest.mark.parametrize("case", cases("task_config"))
def test_task_is_accepted_with_its_directory_as_by_the_reference(case: dict[str, Any]) -> None:
    loaded = load_task(_tree(case))
    accepted = loaded.task is not None
    if case["name"] in DELIBERATE_DIFFERENCES:
        assert case["accept"] and not accepted
        return
    if case["name"] in WINDOWS:
        assert loaded.task is not None
        assert "environment.os" in [problem.key for problem in unsupported(loaded.task)]
        return
    if case["name"] in TOML_1_1:
        assert accepted
        return
    assert accepted == case["accept"], [str(problem) for problem in loaded.problems]
    assert accepted != bool(loaded.problems)
    if loaded.task is not None:
        assert loaded.task.is_multi_step == case["multi_step"]


@pytest.mark.parametrize("case", cases("task_config"))
def test_tests_are_not_needed_where_verification_is_disabled(case: dict[str, Any]) -> None:
    if case["name"] in DELIBERATE_DIFFERENCES.keys() | WINDOWS | TOML_1_1:
        return
    loaded = load_task(_tree(case), verification_disabled=True)
    if case["name"] in INSTRUCTION_NEEDED_ANYWAY:
        assert case["accept_with_verification_disabled"]
        assert loaded.task is None
        return
    assert (loaded.task is not None) == case["accept_with_verification_disabled"]


@pytest.mark.parametrize("case", cases("task_config"))
def test_task_survives_its_snapshot(case: dict[str, Any]) -> None:
    """Not a comparison with the reference: every task that it accepts must come back from JSON as it was."""
    task = load_task(_tree(case)).task
    if task is None:
        return
    for text in (task.model_dump_json(), task.model_dump_json(exclude_defaults=True)):
        again = Task.model_validate_json(text)
        assert _comparable(again.config.model_dump(mode="json")) == _comparable(task.config.model_dump(mode="json"))
        for step, copy in zip(task.steps, again.steps, strict=True):
            assert effective_step(again, copy) == effective_step(task, step)
            assert copy.model_dump_json() == step.model_dump_json()


def test_defaults_are_those_of_the_reference() -> None:
    header = load("task_config")
    assert _comparable(TaskConfig().model_dump()) == _comparable(header["defaults"])
    assert _comparable(StepConfig(name="s1").model_dump()) == _comparable(header["step_defaults"])
    assert _comparable(EnvironmentConfig().model_dump()) == _comparable(header["verifier_environment_defaults"])


def test_every_difference_is_a_case() -> None:
    names = {case["name"] for case in load("task_config")["cases"]}
    assert names >= DELIBERATE_DIFFERENCES.keys() | INSTRUCTION_NEEDED_ANYWAY | WINDOWS | TOML_1_1
