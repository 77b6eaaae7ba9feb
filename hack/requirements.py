"""Print what pyproject.toml asks for, as pip reads it: the Dockerfile installs it before it copies the source."""

from pathlib import Path

import tomli

project = tomli.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
print("\n".join(project["dependencies"]))
