"""What the operator's image runs: `python -m multistep run` and, in the prepare pod, `python -m multistep stage`."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from multistep import handlers
from multistep.engine.types import Settings
from multistep.pods.network_engine import NetworkEngine
from multistep.stage import StageError
from multistep.stage import stage as stage_task

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.command()
def run(
    operator_image: Annotated[
        str, typer.Option(envvar="MULTISTEP_OPERATOR_IMAGE", help="The operator's own image, for the stage container.")
    ],
    namespace: Annotated[
        list[str] | None, typer.Option(envvar="MULTISTEP_NAMESPACES", help="Look at these namespaces only.")
    ] = None,
    workers: Annotated[int, typer.Option(help="How many trials are worked on at the same time.")] = 16,
    network_engine: Annotated[
        NetworkEngine, typer.Option(help="What enforces network policies in this cluster.")
    ] = NetworkEngine.NONE,
    liveness: Annotated[str | None, typer.Option(help="URL to serve the liveness probe on.")] = None,
    verbose: Annotated[bool, typer.Option(help="Log what kopf and the client do, too.")] = False,
) -> None:
    """Run the operator."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    if not verbose:
        # kopf logs each event that woke us; what became of it is logged by ourselves.
        logging.getLogger("kopf").setLevel(logging.WARNING)
        logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    asyncio.run(handlers.run(namespace or [], workers, Settings(operator_image, network_engine), liveness))


@app.command()
def stage(
    bundle: Annotated[Path, typer.Option(help="Directory with the bundle's parts.")],
    destination: Annotated[Path, typer.Option(help="Root of the trial's volume.")],
    digest: Annotated[str, typer.Option(help="Digest of the task that the operator accepted.")],
) -> None:
    """Put a trial's task onto its volume."""
    try:
        stage_task(bundle, destination, digest)
    except StageError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    app()
