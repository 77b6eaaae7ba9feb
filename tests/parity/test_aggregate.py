import math
from typing import Any

import pytest
from parity_vectors import cases
from pydantic import ValidationError

from multistep.scoring import (
    Continue,
    Fail,
    PolicyOverride,
    RewardOverflowError,
    StepScore,
    StopEarly,
    after_step,
    aggregate,
    reward_valid,
)
from multistep.task import TaskConfig

# Where we differ from the reference, and why. docs/harbor-compatibility.md has a row for each.
DELIBERATE_DIFFERENCES = {
    "mean-float-overflow": "a mean beyond the numbers is RewardOverflowError, not an infinite reward",
    "mean-int-overflow": "RewardOverflowError ends this trial; the reference loses it to an uncaught OverflowError",
}


def _score(step: dict[str, Any]) -> StepScore:
    absent = step["rewards"] == "ABSENT"
    rewards = (
        None
        if absent or step["rewards"] is None
        else {
            key: float(value) if isinstance(value, bool) else _number(value) for key, value in step["rewards"].items()
        }
    )
    return StepScore(rewards=rewards, has_result=not absent, error_type=step["exception"])


def _number(value: Any) -> Any:
    return 10**400 if isinstance(value, dict) and "$bigint" in value else value


def _min_reward(step: dict[str, Any]) -> Any:
    """Read min_reward through the task format's model, as it comes from a task.toml."""
    config = TaskConfig.model_validate({"steps": [{"name": "s", "min_reward": step.get("min_reward")}]})
    assert config.steps is not None
    return config.steps[0].min_reward


def _walk(case: dict[str, Any]) -> tuple[list[StepScore], bool]:
    """Walk through the steps as the engine does: the stop rule after each."""
    scores: list[StepScore] = []
    for number, step in enumerate(case["steps"], start=1):
        score = _score(step)
        scores.append(score)
        # With verification disabled nothing is compared with min_reward.
        least = None if case["verifier_disable"] else _min_reward(step)
        match after_step(score, least, number == len(case["steps"])):
            case Continue():
                continue
            case StopEarly() | Fail():
                return scores, number < len(case["steps"])
    return scores, False


@pytest.mark.parametrize("case", cases("aggregate"))
def test_trial_reward_is_what_the_reference_gives(case: dict[str, Any]) -> None:
    expected = case["result"]
    if "config_error" in expected:
        with pytest.raises(ValidationError):
            TaskConfig.model_validate(
                {
                    "multi_step_reward_strategy": case["strategy"],
                    "steps": [{"name": "s", "min_reward": step.get("min_reward")} for step in case["steps"]],
                }
            )
        return
    if any(step["raises"] for step in case["steps"]):
        # Nothing escapes a step here: what the reference loses a trial to ends it as Failed, without a valid reward, too.
        assert (expected["trial_rewards"], expected["reward_valid"]) == (None, False)
        return
    scores, stopped = _walk(case)
    assert [f"s{number}" for number in range(1, len(scores) + 1)] == expected["steps_run"]
    assert stopped == expected["stopped_early"]
    try:
        rewards = aggregate("final" if case["strategy"] == "final" else "mean", scores)
    except RewardOverflowError:
        assert case["name"] in DELIBERATE_DIFFERENCES
        found = expected["trial_rewards"]
        assert found is None or any(math.isinf(value["value"]) for value in found.values())
        return
    assert case["name"] not in DELIBERATE_DIFFERENCES
    if expected["trial_rewards"] is None:
        assert rewards is None
    else:
        assert rewards is not None
        assert {key: (repr(value), type(value).__name__) for key, value in rewards.items()} == {
            key: (repr(value["value"]), value["type"]) for key, value in expected["trial_rewards"].items()
        }
    overrides = {name: PolicyOverride(**fields) for name, fields in case["override_error_policy"].items()}
    assert reward_valid(rewards, scores, overrides) == expected["reward_valid"]


@pytest.mark.parametrize("strategy", ["mean", "final"])
def test_order_of_keys_does_not_depend_on_a_hash_seed(strategy: Any) -> None:
    scores = [
        StepScore({"zeta": 1, "reward": 1, "alpha": 1}, True),
        StepScore({"zeta": 1, "reward": 2, "alpha": 1}, True),
    ]
    rewards = aggregate(strategy, scores)
    assert rewards is not None
    expected = ["reward", "zeta", "alpha"] if strategy == "mean" else ["zeta", "reward", "alpha"]
    assert list(rewards) == expected
