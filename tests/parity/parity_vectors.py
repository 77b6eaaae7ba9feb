"""Reading the vectors measured from harbor 0.26.0 (see docs/harbor-compatibility.md)."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

DIRECTORY = Path(__file__).parent / "vectors"

_SPECIAL = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def load(section: str) -> dict[str, Any]:
    return decode(json.loads((DIRECTORY / f"{section}.json").read_text(encoding="utf-8")))


def cases(section: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in load(section)["cases"]]


def decode(node: Any) -> Any:
    """Decode the vectors' spelling of numbers that JSON does not have."""
    if isinstance(node, dict):
        if node.keys() == {"$float"}:
            return _SPECIAL[node["$float"]]
        return {key: decode(value) for key, value in node.items()}
    return [decode(item) for item in node] if isinstance(node, list) else node


def content(entry: dict[str, Any]) -> bytes:
    if "base64" in entry:
        return base64.b64decode(entry["base64"])
    if "runs" in entry:
        return "".join(character * count for character, count in entry["runs"]).encode()
    return entry["text"].encode("utf-8", "surrogatepass")


def assert_same_number(found: float, expected: dict[str, Any], where: str) -> None:
    """Compare value, sign of zero and the number's type."""
    assert type(found).__name__ == expected["type"], where
    assert repr(found) == repr(expected["value"]), where
