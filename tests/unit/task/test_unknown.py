import time

import pytest
from unit.task.trees import STEP, load


@pytest.mark.parametrize(
    ("toml", "key", "advice"),
    [
        ("agnt = 1\n" + STEP, "agnt", "did you mean agent?"),
        (STEP + "timeout_sec = 5\n", "steps[0].timeout_sec", "did you mean agent.timeout_sec or verifier.timeout_sec"),
        (STEP + "[steps.environment]\ncpus = 1\n", "steps[0].environment", "did you mean verifier.environment?"),
        (STEP + "[steps.agent]\ntimeout = 5\n", "steps[0].agent.timeout", "did you mean timeout_sec?"),
        ("[agent.env]\nA = '1'\n" + STEP, "agent.env", "known keys: "),
        ("[environment]\nmemory_gb = 1\n" + STEP, "environment.memory_gb", "did you mean memory_mb?"),
        ("[environment.healthcheck]\ncommand = 'x'\nretry = 1\n" + STEP, "environment.healthcheck.retry", "retries?"),
        (STEP + "artifacts = [{ source = '/x', dest = 'y' }]\n", "steps[0].artifacts[0].dest", "destination"),
        (
            STEP + "[[steps.verifier.collect]]\ncommand = 'x'\ntimeout = 1\n",
            "steps[0].verifier.collect[0].timeout",
            "timeout_sec",
        ),
    ],
)
def test_unknown_key_is_named_with_what_was_meant(toml: str, key: str, advice: str) -> None:
    loaded = load(toml)
    assert loaded.task is not None
    (warning,) = loaded.warnings
    assert warning.key == key
    assert advice in warning.message


def test_a_misspelt_step_table_is_noticed_although_the_task_cannot_be_loaded() -> None:
    loaded = load('[[step]]\nname = "s1"\n')
    assert loaded.task is None
    assert [warning.key for warning in loaded.warnings] == ["step"]
    assert "did you mean steps?" in loaded.warnings[0].message


def test_free_tables_and_old_names_are_no_warnings() -> None:
    toml = 'version = "1.0"\n[metadata.any]\nthing = 1\n[environment]\nmemory = "1G"\nallow_internet = true\n[environment.env]\nX = "y"\n'
    assert load(toml + STEP).warnings == ()


def test_many_unknown_keys_cost_little_and_give_few_warnings() -> None:
    started = time.monotonic()
    loaded = load("".join(f"k{number} = 1\n" for number in range(20_000)) + STEP)
    assert len(loaded.warnings) == 51
    assert time.monotonic() - started < 5


def test_long_keys_are_cut() -> None:
    (warning,) = load(f"{'k' * 10_000} = 1\n" + STEP).warnings
    assert len(str(warning)) < 700
