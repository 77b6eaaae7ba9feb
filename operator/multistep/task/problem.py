"""A problem of a task: which file, which key, what was found, what would be right."""

from __future__ import annotations

from dataclasses import dataclass

_LONGEST_FOUND = 80


def shown(value: object) -> str:
    """Return a value as it is shown in a problem: its repr, cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= _LONGEST_FOUND else text[: _LONGEST_FOUND - 3] + "..."


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a task.

    Attributes:
        file: path relative to the task's directory, or the field of the trial's spec.
        key: TOML path such as `steps[1].agent.timeout_sec`; None where the file as a whole is meant.
        found: what was found there, shortened; None where nothing was.
        message: a sentence that says what is wrong or what would be right.
    """

    file: str
    key: str | None
    found: str | None
    message: str

    def __str__(self) -> str:
        """Return the problem in one line, whatever line breaks a file's name or a key may hold."""
        where = self.file if self.key is None else f"{self.file}: {self.key}"
        found = "" if self.found is None else f"found {self.found}: "
        return " ".join(f"{where}: {found}{self.message}".split())
