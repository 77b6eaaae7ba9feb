import pytest
from unit.task.trees import STEP, load

from multistep.task import load_task, tree_from_inline, unsupported


@pytest.mark.parametrize(
    ("toml", "keys"),
    [
        ('[environment]\nos = "windows"\n' + STEP, ["environment.os"]),
        ("[verifier.environment]\nos = 'windows'\n" + STEP, ["verifier.environment.os"]),
        (STEP + "[steps.verifier.environment]\nos = 'windows'\n", ["steps[0].verifier.environment.os"]),
        ('[environment]\ngpus = 1\n[environment.tpu]\ntype = "v6e"\ntopology = "2x4"\n' + STEP, ["environment.tpu"]),
        ('[environment]\nnetwork_mode = "no-network"\ngpus = 1\n' + STEP, []),
        ('[verifier]\nenvironment_mode = "separate"\n' + STEP, []),
        ('artifacts = ["/x"]\n' + STEP, []),
        ('artifacts = ["/x\\ny"]\n' + STEP, ["artifacts[0]"]),
        (STEP + 'artifacts = [{ source = "/x", service = "db" }]\n', ["steps[0].artifacts[0].service"]),
        ('[[verifier.collect]]\ncommand = "x"\n' + STEP, []),
        ('[[verifier.collect]]\ncommand = "x"\nservice = "db"\n' + STEP, ["verifier.collect[0].service"]),
        (
            STEP + '[[steps.verifier.collect]]\ncommand = "x"\nservice = "db"\n',
            ["steps[0].verifier.collect[0].service"],
        ),
    ],
)
def test_setting_that_cannot_be_run_is_named(toml: str, keys: list[str]) -> None:
    task = load(toml).task
    assert task is not None
    found = unsupported(task)
    assert [problem.key for problem in found] == keys
    assert all(problem.message and problem.file == "task.toml" for problem in found)


@pytest.mark.parametrize("path", ["environment/docker-compose.yaml", "trajectory.json", "steps/s1/trajectory.json"])
def test_file_that_asks_for_a_missing_feature_is_named(path: str) -> None:
    # Many neighbours: it must be found wherever it is in the order of names.
    others = {f"environment/a{number:03}": "x" for number in range(150)}
    task = load(STEP, {path: "x", **others}).task
    assert task is not None
    assert [problem.file for problem in unsupported(task)] == [path]


@pytest.mark.parametrize("path", ["environment/docker-compose.yml", "steps/undeclared/trajectory.json"])
def test_file_that_the_reference_does_not_read_is_fine(path: str) -> None:
    task = load(STEP, {path: "x"}).task
    assert task is not None
    assert unsupported(task) == []


def test_ordinary_task_is_supported() -> None:
    toml = '[environment]\ncpus = 2\nmemory_mb = 512\ngpus = 0\ndocker_image = "x"\n[agent]\nuser = "a"\n'
    task = load(toml + STEP + "min_reward = 0.5\n").task
    assert task is not None
    assert unsupported(task) == []


def test_task_without_steps_is_said_to_be_one() -> None:
    task = load_task(tree_from_inline({"task.toml": "", "instruction.md": "x", "tests/test.sh": "x"}, {})).task
    assert task is not None
    assert [problem.key for problem in unsupported(task)] == ["steps"]


@pytest.mark.parametrize(
    "key", ["healthcheck = { command = 'true' }", "skills_dir = '/s'", "mcp_servers = [{ name = 'x', url = 'u' }]"]
)
def test_setting_of_a_verifier_s_environment_that_nobody_acts_upon_is_a_warning(key: str) -> None:
    loaded = load(STEP + f"[steps.verifier.environment]\n{key}\n")
    name = key.split(" ")[0]
    assert [warning.key for warning in loaded.warnings] == [f"steps[0].verifier.environment.{name}"]
