"""What follows a step: the next one, an early stop by `min_reward`, or the end of a trial whose step has no result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from multistep.scoring.aggregate import StepScore
from multistep.scoring.rewards import Rewards

MinReward = float | Mapping[str, float] | None


@dataclass(frozen=True)
class EarlyStop:
    """Why `min_reward` was not met: the thresholds, what was observed of them, and the keys that were missing."""

    thresholds: dict[str, float]
    observed: Rewards
    missing: tuple[str, ...]
    message: str = field(compare=False)


@dataclass(frozen=True)
class Continue:
    """Go on with the next step."""


@dataclass(frozen=True)
class StopEarly:
    """Stop: an answer, not a fault."""

    stop: EarlyStop


@dataclass(frozen=True)
class Fail:
    """Stop: the step has an error and no verifier result."""


def after_step(score: StepScore, min_reward: MinReward, is_last: bool) -> Continue | StopEarly | Fail:
    """Decide what follows a step. The one place of this rule; `min_reward` of the last step has no effect."""
    if score.error_type is not None and not score.has_result:
        return Fail()
    if is_last:
        return Continue()
    stop = stop_decision(min_reward, score.rewards)
    return Continue() if stop is None else StopEarly(stop)


def stop_decision(min_reward: MinReward, rewards: Rewards | None) -> EarlyStop | None:
    """Check rewards against `min_reward`: a number means the key `reward`; a missing key fails; equality passes."""
    if min_reward is None:
        return None
    thresholds = dict(min_reward) if isinstance(min_reward, Mapping) else {"reward": min_reward}
    found = rewards or {}
    # A missing key counts as minus infinity, so that a threshold of 0 still means "must exist".
    failed = [key for key, least in thresholds.items() if found.get(key, float("-inf")) < least]
    if not failed:
        return None
    missing = tuple(key for key in failed if key not in found)
    texts = [
        f"{key} is missing (min_reward {thresholds[key]:g})"
        if key in missing
        else f"{key} is {found[key]:g}, min_reward {thresholds[key]:g}"
        for key in failed
    ]
    observed = {key: found[key] for key in thresholds if key in found}
    return EarlyStop(thresholds, observed, missing, "min_reward is not met: " + ", ".join(texts))
