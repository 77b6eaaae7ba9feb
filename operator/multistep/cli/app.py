"""The commands of `multistep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from multistep.cli.pack import PackError, pack_manifests, render

app = typer.Typer(
    name="multistep",
    help="Work with multi-step tasks in Harbor's format.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _commands() -> None:
    """Work with multi-step tasks in Harbor's format."""


@app.command()
def pack(
    directory: Annotated[Path, typer.Argument(help="The task's directory, with task.toml in it.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the objects; made from the directory's name when absent.")
    ] = None,
    agent: Annotated[str, typer.Option(help="The agent of the trial: oracle, nop or command.")] = "oracle",
    image: Annotated[str | None, typer.Option(help="Image of the environment, where task.toml names none.")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace of the objects.")] = None,
    command: Annotated[list[str] | None, typer.Argument(help="The program of the command agent, after `--`.")] = None,
) -> None:
    """Print a task as ConfigMaps and a MultiStepTrial that runs it, for `kubectl apply -f -`.

    Execute bits and symbolic links survive. A bundle over the limit of a ConfigMap is split over several.
    """
    try:
        packed = pack_manifests(
            directory, name=name, agent=agent, image=image, namespace=namespace, command=command or []
        )
    except PackError as error:
        typer.echo(f"multistep: {error}", err=True)
        raise typer.Exit(1) from error
    for warning in packed.warnings:
        typer.echo(f"multistep: warning: {warning}", err=True)
    typer.echo(render(packed.manifests), nl=False)
