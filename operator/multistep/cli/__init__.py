"""The command line tool `multistep`, also installed as the kubectl plugin `kubectl multistep`."""

from __future__ import annotations

from multistep.cli.app import app


def main() -> None:
    """Run the tool."""
    app()
