import pytest
from unit.task.trees import STEP, load

from multistep.task import NetworkMode, NetworkPolicy, Overrides, Task, effective_step

SECOND = '[[steps]]\nname = "s2"\n'
SECOND_FILES = {"steps/s2/instruction.md": "x", "tests/test.sh": "x"}


def _task(toml: str, files: dict[str, str] | None = None) -> Task:
    loaded = load(toml, files)
    assert loaded.task is not None, loaded.problems
    return loaded.task


@pytest.mark.parametrize(
    ("step", "expected"),
    [("", 100), ('[steps.verifier]\nuser = "root"\n', 100), ("[steps.verifier]\ntimeout_sec = 600\n", 600)],
)
def test_verifier_timeout_is_inherited_unless_the_step_sets_one_also_after_a_snapshot(
    step: str, expected: float
) -> None:
    """A step that sets the default of 600 says so on purpose: a snapshot that drops defaults must not lose it."""
    task = _task("[verifier]\ntimeout_sec = 100\n" + STEP + step)
    copies = [Task.model_validate_json(task.model_dump_json(exclude_defaults=drop)) for drop in (False, True)]
    for each in (task, *copies):
        assert effective_step(each, each.steps[0]).verifier_timeout_sec == expected


@pytest.mark.parametrize("value", ["inf", "-inf"])
def test_infinite_thresholds_survive_a_snapshot(value: str) -> None:
    task = _task(STEP + f"min_reward = {value}\n")
    copy = Task.model_validate_json(task.model_dump_json(exclude_defaults=True))
    assert copy.steps[0].config.min_reward == copy.config.steps[0].min_reward == float(value)


def test_snapshot_keeps_what_the_files_say() -> None:
    files = {"steps/s1/workdir/setup.sh": "x", "steps/s1/solution/solve.sh": "x", "trajectory.json": "{}"}
    task = _task(STEP + "[metadata]\nday = 2024-01-02\nodd = nan\n", files)
    copy = Task.model_validate_json(task.model_dump_json(exclude_defaults=True))
    assert copy.steps[0].model_dump() == task.steps[0].model_dump()
    assert (copy.digest, copy.files, copy.is_multi_step) == (task.digest, ["trajectory.json"], True)


def test_step_settings_win_over_the_tasks() -> None:
    task = _task(
        '[agent]\nuser = "a"\ntimeout_sec = 1\n[verifier]\nuser = "v"\n[verifier.env]\nA = "1"\nB = "1"\n'
        '[[steps]]\nname = "s1"\n[steps.agent]\nuser = 0\ntimeout_sec = 0\n[steps.verifier.env]\nB = "2"\n'
        '[steps.healthcheck]\ncommand = "x"\n' + SECOND,
        SECOND_FILES,
    )
    first, second = (effective_step(task, step) for step in task.steps)
    assert (first.agent_user, first.agent_timeout_sec, second.agent_user, second.agent_timeout_sec) == (0, 0, "a", 1)
    assert (first.verifier_user, first.verifier_env) == ("v", {"A": "1", "B": "2"})
    assert first.healthcheck is not None
    assert second.healthcheck is None


def test_trial_wins_over_both_and_a_multiplier_of_zero_counts() -> None:
    task = _task(STEP + '[steps.agent]\ntimeout_sec = 10\n[steps.verifier.env]\nA = "step"\n')
    overrides = Overrides.model_validate(
        {
            "agent": {"override_timeout_sec": 50, "max_timeout_sec": 20},
            "verifier": {"env": {"A": "trial"}, "disable": True},
            "verifier_timeout_multiplier": 0,
            "timeout_multiplier": 3,
        }
    )
    found = effective_step(task, task.steps[0], overrides)
    assert (found.agent_timeout_sec, found.verifier_timeout_sec) == (60, 0)
    assert (found.verifier_env, found.verification_disabled) == ({"A": "trial"}, True)


def test_an_own_verifier_environment_may_be_public_where_the_task_is_not() -> None:
    task = _task('[environment]\nnetwork_mode = "no-network"\n[verifier.environment]\ncpus = 1\n' + STEP)
    plan = effective_step(task, task.steps[0]).network
    assert plan.agent_phase == NetworkPolicy(NetworkMode.NO_NETWORK)
    assert plan.verifier_environment == plan.verifier_phase == NetworkPolicy(NetworkMode.PUBLIC)


def test_extra_hosts_are_normalized_and_not_doubled() -> None:
    task = _task('[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.com"]\n' + STEP)
    overrides = Overrides.model_validate({"agent": {"extra_allowed_hosts": ["A.com.", "b.com"]}})
    assert effective_step(task, task.steps[0], overrides).network.agent_phase.hosts == ("a.com", "b.com")
