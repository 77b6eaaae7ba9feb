"""The trial's rewards from the steps' rewards: `multi_step_reward_strategy`, as in Harbor 0.26."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from multistep.scoring.policy import PolicyOverride, error_policy
from multistep.scoring.rewards import RewardError, Rewards

Strategy = Literal["mean", "final"]


class RewardOverflowError(RewardError):
    """The sum of the rewards lies beyond what a number can hold."""


@dataclass(frozen=True)
class StepScore:
    """One attempted step, as far as scoring looks at it.

    Attributes:
        rewards: what the verifier gave; None stands for no rewards in a result, too.
        has_result: whether there is a verifier result at all.
        error_type: the step's error, whether or not it was graded.
    """

    rewards: Rewards | None
    has_result: bool
    error_type: str | None = None


def aggregate(strategy: Strategy, steps: Sequence[StepScore]) -> Rewards | None:
    """Return the trial's rewards over the attempted steps; None where there is no result to stand on.

    `mean`: over the steps that have a result, a key that one of them lacks counting as 0 there. Steps without a result, and steps
    that were never attempted, do not count: say on how many steps a mean stands when you show it.
    `final`: the rewards of the last attempted step.

    Raises:
        RewardOverflowError: a mean is not finite.
    """
    if strategy == "final":
        last = steps[-1] if steps else None
        return dict(last.rewards) if last is not None and last.rewards is not None else None
    results = [step.rewards or {} for step in steps if step.has_result]
    keys = _keys(results)
    return {key: _mean(key, [rewards.get(key, 0) for rewards in results]) for key in keys} or None


def reward_valid(
    rewards: Rewards | None, steps: Iterable[StepScore], overrides: Mapping[str, PolicyOverride] | None = None
) -> bool:
    """Return the reference's `reward_valid`: there are rewards, and no step's error spoils them."""
    policies = overrides or {}
    errors = [step.error_type for step in steps if step.error_type is not None]
    return bool(rewards) and all(error_policy(error, policies.get(error)).has_valid_reward for error in errors)


def trial_reward_valid(rewards: Rewards | None, steps: Sequence[StepScore]) -> bool:
    """Return whether rewards stand for the trial: valid by the reference, and every attempted step has a result.

    Stricter than the reference on purpose: there a crash in step 2 of 3 leaves a mean over one step, marked as valid.
    """
    return all(step.has_result for step in steps) and reward_valid(rewards, steps)


def _keys(results: Sequence[Rewards]) -> list[str]:
    """Return all keys in a stable order: `reward`, then by first appearance. The reference's order depends on a hash seed."""
    seen = dict.fromkeys(key for rewards in results for key in rewards)
    return sorted(seen, key=lambda key: key != "reward")


def _mean(key: str, values: Sequence[float]) -> float:
    """Return the mean with an exactly rounded sum, whatever the interpreter's own `sum` does."""
    try:
        result = math.fsum(values) / len(values)
    except OverflowError as error:
        raise RewardOverflowError(f"the mean of {key!r} is too large for a number") from error
    if math.isinf(result) and all(math.isfinite(value) for value in values):
        raise RewardOverflowError(f"the mean of {key!r} is too large for a number")
    return result
