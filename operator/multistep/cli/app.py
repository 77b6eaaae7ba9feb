"""The commands of `multistep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from multistep.cli.inspect import RENDERERS, inspect_task
from multistep.cli.load import TaskDirectoryError
from multistep.cli.pack import PackError, pack_manifests, render
from multistep.cli.regrade import RegradeRequestError, default_namespace, request_regrade

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
def inspect(
    directory: Annotated[Path, typer.Argument(help="The task's directory, with task.toml in it.")],
    output: Annotated[str, typer.Option("--output", "-o", help="table, json or yaml.")] = "table",
) -> None:
    """Show the settings that hold for each step, and what of the task cannot be run here."""
    try:
        inspected = inspect_task(directory)
    except TaskDirectoryError as error:
        _fail(str(error))
    for warning in inspected.warnings:
        typer.echo(f"multistep: warning: {warning}", err=True)
    if output not in RENDERERS:
        _fail(f"there is no output {output!r}: it is one of {', '.join(RENDERERS)}")
    typer.echo(RENDERERS[output](inspected), nl=False)


def _fail(message: str) -> NoReturn:
    typer.echo(f"multistep: {message}", err=True)
    raise typer.Exit(1)


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
    except (PackError, TaskDirectoryError) as error:
        _fail(str(error))
    for warning in packed.warnings:
        typer.echo(f"multistep: warning: {warning}", err=True)
    typer.echo(render(packed.manifests), nl=False)


@app.command()
def regrade(
    name: Annotated[str, typer.Argument(help="The trial, which has ended.")],
    step: Annotated[str | None, typer.Option(help="The step; the last one that was attempted when absent.")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace of the trial.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
) -> None:
    """Run a step's verifier again on what the trial left, without the agent. Both results stay in the trial's status."""
    where = namespace or default_namespace(context)
    try:
        request_regrade(name, where, step, context)
    except RegradeRequestError as error:
        _fail(str(error))
    typer.echo(
        f"multisteptrial.multistep.dev/{name} is graded again; see: kubectl -n {where} get mst {name} -o jsonpath='{{.status.regrades}}'"
    )
