"""A step's instruction as the agent gets it: without the canary lines by which benchmarks are traced in training data."""

from __future__ import annotations


def instruction_text(raw: bytes) -> str:
    """Decode an instruction and drop leading canary comments, with the blank lines after them. Later ones stay (FINDINGS 40).

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    lines = raw.decode("utf-8").split("\n")
    start = 0
    while start < len(lines) and _is_canary(lines[start].strip()):
        start += 1
    while start < len(lines) and not lines[start].strip():
        start += 1
    return "\n".join(lines[start:])


def _is_canary(line: str) -> bool:
    """Whether a line is an HTML comment or a `#` comment that holds the word, in any case."""
    if line.startswith("<!--") and line.endswith("-->"):
        return "canary" in line[4:-3].lower()
    return line.startswith("#") and "canary" in line.lower()
