from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from multistep.cli import pack as pack_module
from multistep.cli.app import app
from multistep.pods.prepare import config_map_parts

CLIENT_SIDE_APPLY_BYTES = 262_144


@pytest.fixture
def task(tmp_path: Path) -> Path:
    root = tmp_path / "My Task"
    for path, text in {
        "task.toml": '[environment]\ndocker_image = "i"\n[[steps]]\nname = "a"\n',
        "steps/a/instruction.md": "x",
        "tests/test.sh": "true",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def _run(*arguments: str):
    return CliRunner().invoke(app, ["pack", *arguments])


def test_pack_prints_what_can_be_applied(task: Path) -> None:
    result = _run(str(task), "-n", "evals")
    config_map, trial = yaml.safe_load_all(result.stdout)
    assert (trial["kind"], trial["metadata"]) == ("MultiStepTrial", {"name": "my-task", "namespace": "evals"})
    assert trial["spec"]["task"]["configMap"] == {"name": config_map["metadata"]["name"]}
    assert config_map["immutable"] and list(config_map["binaryData"]) == ["task.tar.gz"]


def test_same_task_gives_the_same_output_and_a_changed_one_another_name(task: Path) -> None:
    first = _run(str(task)).stdout
    assert _run(str(task)).stdout == first
    (task / "steps/a/instruction.md").write_text("y")
    names = {next(yaml.safe_load_all(text))["metadata"]["name"] for text in (first, _run(str(task)).stdout)}
    assert len(names) == 2


def test_parts_fit_client_side_apply(task: Path) -> None:
    (task / "tests/noise").write_bytes(__import__("random").Random(1).randbytes(500_000))
    documents = list(yaml.safe_load_all(_run(str(task)).stdout))
    parts = documents[-1]["spec"]["task"]["configMap"]["parts"]
    assert [item["metadata"]["name"] for item in documents[:-1]] == config_map_parts(
        documents[0]["metadata"]["name"], parts
    )
    assert all(len(yaml.safe_dump(item)) < CLIENT_SIDE_APPLY_BYTES for item in documents)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--agent", "claude"], "there is no agent 'claude': it is one of oracle, nop, command"),
        (["--agent", "command"], "needs its program"),
        (["--name", "///"], "give one with --name"),
    ],
)
def test_mistakes_are_told_in_a_sentence(task: Path, arguments: list[str], words: str) -> None:
    result = _run(str(task), *arguments)
    assert result.exit_code == 1 and words in result.stderr and "Traceback" not in result.output


def test_problems_of_the_task_are_listed(task: Path) -> None:
    (task / "tests/test.sh").unlink()
    (task / "steps/a/instruction.md").unlink()
    result = _run(str(task))
    assert result.exit_code == 1
    assert "steps/a/instruction.md" in result.stderr and "tests/test.sh" in result.stderr


def test_command_of_the_agent_is_taken_after_two_dashes(task: Path) -> None:
    result = _run(str(task), "--agent", "command", "--", "sh", "-c", "--weird $x")
    *_, trial = yaml.safe_load_all(result.stdout)
    assert trial["spec"]["agent"] == {"name": "command", "command": ["sh", "-c", "--weird $x"]}


def test_missing_directory_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path}/no is not a directory" in _run(f"{tmp_path}/no").stderr.replace("\n", "")
    assert pack_module.object_name("org/My_Name!") == "my-name"
