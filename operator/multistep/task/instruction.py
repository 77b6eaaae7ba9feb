"""A step's instruction as the agent gets it: without the canary lines by which benchmarks are traced in training data."""

from __future__ import annotations

import re

_CANARY = re.compile(r"(<!--.*canary.*-->|#.*canary.*)", re.IGNORECASE)


def instruction_text(raw: bytes) -> str:
    """Decode an instruction and drop leading canary comments, with the blank lines after them. Later ones stay.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    lines = raw.decode("utf-8").split("\n")
    start = 0
    while start < len(lines) and _CANARY.fullmatch(lines[start].strip()):
        start += 1
    while start < len(lines) and not lines[start].strip():
        start += 1
    return "\n".join(lines[start:])
