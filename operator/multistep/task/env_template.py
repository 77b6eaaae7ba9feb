"""`${VAR}` in the env tables of task.toml: only where it is the whole value, as in Harbor 0.26."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TEMPLATE = re.compile(r"\$\{([^}:]+)(?::-(.*))?\}", re.DOTALL)


@dataclass(frozen=True)
class EnvReference:
    """A value that somebody else provides, under `name`; `default` where nobody does."""

    name: str
    default: str | None


def parse_env_value(text: str) -> EnvReference | str:
    """Return a reference where the entire value is `${VAR}` or `${VAR:-default}`, else the text itself."""
    match = _TEMPLATE.fullmatch(text)
    return EnvReference(match[1], match[2]) if match else text
