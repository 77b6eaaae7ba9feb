"""Reward files: what a verifier may leave behind, and each way in which it can be wrong.

The rules are those of Harbor 0.26 (`../shared/parity/rewards_parse.json`, copied to tests/parity), save where the docs list a difference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

Rewards = dict[str, int | float]
"""A step's or a trial's rewards: key -> number. Integers stay integers, as the test wrote them."""

RewardFileName = Literal["reward.json", "reward.txt"]


@dataclass(frozen=True)
class RewardFile:
    """The reward file as it lay in /logs/verifier: name, what it was, and its bytes."""

    name: RewardFileName
    kind: Literal["file", "directory"]
    content: bytes


class RewardError(Exception):
    """The verifier gave no reward that can be used. `error_type` is Harbor's name of the exception."""

    @property
    def error_type(self) -> str:
        """The name that goes into status."""
        return type(self).__name__


class RewardFileNotFoundError(RewardError):
    """The test left neither reward.json nor reward.txt."""


class RewardFileEmptyError(RewardError):
    """The reward file has no bytes."""


class VerifierOutputParseError(RewardError):
    """The reward file is not what it has to be."""


def choose_reward_file(present: Collection[str]) -> RewardFileName | None:
    """Say which file counts: reward.json whenever it exists, even when it is broken, else reward.txt.

    The runner in the verifier pod applies the same rule; a dangling link does not exist.
    """
    if "reward.json" in present:
        return "reward.json"
    return "reward.txt" if "reward.txt" in present else None


def parse_rewards(file: RewardFile | None) -> Rewards:
    """Parse what the verifier left.

    Raises:
        RewardFileNotFoundError: there is no reward file.
        RewardFileEmptyError: it is empty.
        VerifierOutputParseError: it is anything but one number (reward.txt) or one JSON object of finite numbers (reward.json).
    """
    if file is None:
        raise RewardFileNotFoundError(
            "the test wrote neither /logs/verifier/reward.json nor /logs/verifier/reward.txt: did it fail before?"
        )
    if file.kind == "directory":
        raise VerifierOutputParseError(f"{file.name} is no regular file: write a file of that name")
    if not file.content:
        raise RewardFileEmptyError(
            f"{file.name} is empty: write a number to it (reward.txt) or an object (reward.json)"
        )
    try:
        text = file.content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise VerifierOutputParseError(
            f"{file.name} is not UTF-8 text: {error.reason} at byte {error.start}"
        ) from error
    return _parse_json(text) if file.name == "reward.json" else _parse_text(text)


def _parse_text(text: str) -> Rewards:
    try:
        value = float(text)
    except ValueError as error:
        raise VerifierOutputParseError(f"reward.txt holds {_excerpt(text)}: it must be one number") from error
    return {"reward": _finite("reward.txt", "the reward", value)}


def _parse_json(text: str) -> Rewards:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise VerifierOutputParseError(f"reward.json is no JSON: {_excerpt(str(error))}") from error
    if not isinstance(document, dict):
        raise VerifierOutputParseError(
            f'reward.json holds {_excerpt(text)}: it must be an object of numbers, such as {{"reward": 1.0}}'
        )
    return {_valid_text(key): _number(key, value) for key, value in document.items()}


def _number(key: str, value: Any) -> int | float:
    """Return a JSON value as a number; true and false count as 1.0 and 0.0, as in the reference."""
    where = f"key {_excerpt(key)}"
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int):
        try:
            _finite("reward.json", where, float(value))
        except OverflowError as error:
            raise VerifierOutputParseError(f"reward.json: {where} has {len(str(value))} digits: too large") from error
        return value
    if isinstance(value, float):
        return _finite("reward.json", where, value)
    raise VerifierOutputParseError(f"reward.json: {where} is {_excerpt(json.dumps(value))}: it must be a number")


def _finite(file: str, where: str, value: float) -> float:
    if not math.isfinite(value):
        raise VerifierOutputParseError(f"{file}: {where} is {value}: it must be a finite number")
    return value


def _valid_text(key: str) -> str:
    """Replace lone surrogates, which JSON can spell and UTF-8 cannot hold."""
    return key.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _excerpt(text: str, limit: int = 80) -> str:
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
