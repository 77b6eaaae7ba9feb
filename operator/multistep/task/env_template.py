"""`${VAR}` in the env tables of task.toml: only where it is the whole value, as in Harbor 0.26 (FINDINGS 57)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EnvReference:
    """A value that somebody else provides, under `name`; `default` where nobody does. A value that is set but empty counts."""

    name: str
    default: str | None


def parse_env_value(text: str) -> EnvReference | str:
    """Return a reference where the entire value is `${VAR}` or `${VAR:-default}`, else the text itself.

    The name is whatever stands there: `${V-d}` asks for a variable called `V-d`. The default goes up to the last brace, is not expanded,
    and is of one line; a text of more is no reference.
    """
    if not (text.startswith("${") and text.endswith("}")):
        return text
    name, colon, rest = text[2:-1].partition(":")
    if not name or "}" in name:
        return text
    if not colon:
        return EnvReference(name, None)
    return EnvReference(name, rest[1:]) if rest.startswith("-") and "\n" not in rest else text
