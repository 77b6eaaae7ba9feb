"""Scoring: reward files, min_reward, mean and final, and what errors mean for a reward. Pure functions."""

from multistep.scoring.aggregate import (
    RewardOverflowError,
    StepScore,
    Strategy,
    aggregate,
    reward_valid,
    trial_reward_valid,
)
from multistep.scoring.policy import ErrorPolicy, PolicyOverride, error_policy, is_known
from multistep.scoring.rewards import (
    RewardError,
    RewardFile,
    RewardFileEmptyError,
    RewardFileName,
    RewardFileNotFoundError,
    Rewards,
    VerifierOutputParseError,
    choose_reward_file,
    parse_rewards,
)
from multistep.scoring.stop import (
    Continue,
    EarlyStop,
    Fail,
    MinReward,
    StopEarly,
    after_step,
    stop_decision,
)

__all__ = [
    "Continue",
    "EarlyStop",
    "ErrorPolicy",
    "Fail",
    "MinReward",
    "PolicyOverride",
    "RewardError",
    "RewardFile",
    "RewardFileEmptyError",
    "RewardFileName",
    "RewardFileNotFoundError",
    "RewardOverflowError",
    "Rewards",
    "StepScore",
    "StopEarly",
    "Strategy",
    "VerifierOutputParseError",
    "after_step",
    "aggregate",
    "choose_reward_file",
    "error_policy",
    "is_known",
    "parse_rewards",
    "reward_valid",
    "stop_decision",
    "trial_reward_valid",
]
