import base64
import json
from typing import Any

import pytest
from parity_vectors import cases, load
from pydantic import ValidationError

from multistep.task import Entry, FileTree, TaskConfig, load_task, unsupported
from multistep.task.artifacts import collisions
from multistep.task.load import _parse

# Tasks that the reference accepts and we refuse, or the reverse, and why. docs/harbor-compatibility.md has a row for each group.
_GROUPS = {
    "a time that is no usable number of seconds (NaN, infinite, negative, beyond a year) hides a trial that never ends": [
        *(f"{name}-{kind}" for name in ("agent-timeout", "verifier-timeout", "step-agent-timeout", "step-verifier-timeout")
          for kind in ("nan", "inf", "neg-inf", "negative", "huge")),
        *(f"build-timeout-{kind}" for kind in ("nan", "inf", "neg-inf", "negative", "huge")),
        "collect-timeout-negative",
        "healthcheck-nan",
    ],
    "a negative amount of CPU, memory or disk is a mistake": [
        "cpus-negative", "memory-mb-negative", "storage-mb-negative", "gpus-negative", "legacy-memory-negative",
    ],
    "every reward would pass a threshold of NaN": ["min-reward-nan", "min-reward-object-nan"],
    "an instruction or a test that cannot be read would become a graded error of the agent": [
        "dir-step-instruction-is-dir", "dir-step-test-sh-is-dir", "dir-step-instruction-invalid-utf8",
    ],
}  # fmt: skip
_NAMES = {case["name"] for case in load("task_config")["cases"]}
DELIBERATE_DIFFERENCES = {name: reason for reason, names in _GROUPS.items() for name in names if name in _NAMES}

# Windows is refused as a whole, with a sentence, by `unsupported`; its scripts are not looked for.
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
    document, _ = _parse(FileTree({"task.toml": Entry("file", 0o644, raw)}))
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
    document, _problems = _parse(_tree(case))
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
    document, _ = _parse(_tree(case))
    with pytest.raises(ValidationError) as caught:
        TaskConfig.model_validate(document)
    found = [
        (".".join(str(part) for part in item["loc"] if not str(part).startswith("function-")), item["type"])
        for item in caught.value.errors()
    ]
    assert (error["error_field"], error["error_type"]) in found


@pytest.mark.parametrize("case", cases("task_config"))
def test_task_is_accepted_with_its_directory_as_by_the_reference(case: dict[str, Any]) -> None:
    loaded = load_task(_tree(case))
    accepted = loaded.task is not None
    if case["name"] in DELIBERATE_DIFFERENCES:
        assert case["accept"] and not accepted
        return
    if case["name"] in WINDOWS:
        assert loaded.task is None or any(problem.key == "environment.os" for problem in unsupported(loaded.task))
        return
    if case["name"] in TOML_1_1:
        assert accepted
        return
    assert accepted == case["accept"], [str(problem) for problem in loaded.problems]
    assert accepted != bool(loaded.problems)
    if loaded.task is not None:
        assert loaded.task.is_multi_step == case["multi_step"]
