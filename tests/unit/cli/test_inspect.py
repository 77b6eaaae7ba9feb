import json
from pathlib import Path

import pytest
import yaml
from support.world import task_files
from typer.testing import CliRunner

from multistep.cli.app import app


@pytest.fixture
def task(tmp_path: Path) -> Path:
    config = '[agent]\ntimeout_sec = 90\nuser = "bob"\n[environment]\ndocker_image = "i:1"\nos = "windows"'
    for path, text in task_files(
        2, config=config, step_config={2: "min_reward = 0.5\n[steps.agent]\ntimeout_sec = 5"}
    ).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def _run(*arguments: str):
    return CliRunner().invoke(app, ["inspect", *arguments])


def test_table_shows_what_holds_for_each_step(task: Path) -> None:
    lines = _run(str(task)).stdout.splitlines()
    assert "image: i:1" in lines
    first, second = (next(line for line in lines if f"step {number}" in line) for number in (1, 2))
    assert "90 s" in first and "bob" in first and "600 s" in first
    assert "5 s" in second and "0.5" in second
    assert any(line.startswith("cannot be run: task.toml: environment.os") for line in lines)


def test_json_and_yaml_say_the_same(task: Path) -> None:
    document = json.loads(_run(str(task), "-o", "json").stdout)
    assert document == yaml.safe_load(_run(str(task), "-o", "yaml").stdout)
    assert [step["agentTimeoutSeconds"] for step in document["steps"]] == [90, 5]


def test_mistakes_are_told_in_a_sentence(task: Path) -> None:
    assert "there is no output 'xml': it is one of table, json, yaml" in _run(str(task), "-o", "xml").stderr
    (task / "task.toml").unlink()
    result = _run(str(task))
    assert result.exit_code == 1 and "task.toml: " in result.stderr
