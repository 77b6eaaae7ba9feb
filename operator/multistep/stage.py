"""The `stage` container of the prepare pod: the task from its bundle onto the volume, and the tools that the runner needs."""

from __future__ import annotations

import shutil
from pathlib import Path

from multistep.pods import layout
from multistep.task import BundleError, extract, instruction_text, tree_from_directory
from multistep.task.ignore import IGNORE_FILE, is_ignore_file

TOOLS = Path("/opt/multistep/bin")


class StageError(Exception):
    """The task cannot be staged; the message is shown in the trial's status."""


def stage(bundle: Path, destination: Path, digest: str, tools: Path = TOOLS) -> None:
    """Unpack the bundle onto the volume and check that it is the task that the operator accepted.

    Args:
        bundle: directory with the bundle's parts, in the order of their names.
        destination: the root of the trial's volume.
        digest: the digest of the task that was accepted.
        tools: directory with busybox, gosu and the runner.

    Raises:
        StageError: the bundle is broken, or is not the task that was accepted.
    """
    data = b"".join(part.read_bytes() for part in sorted(bundle.iterdir()) if part.is_file())
    task = destination / layout.TASK
    try:
        extract(data, task)
    except BundleError as error:
        raise StageError(str(error)) from error
    found = tree_from_directory(task).digest()
    if found != digest:
        raise StageError(
            f"the bundle changed after the trial had started: its digest is {found}, {digest} was accepted"
        )
    for rules in task.rglob(IGNORE_FILE):
        if is_ignore_file(rules.relative_to(task).as_posix()):
            rules.unlink()
    for instruction in task.glob("steps/*/instruction.md"):
        if instruction.is_file() and not instruction.is_symlink():
            instruction.write_text(instruction_text(instruction.read_bytes()), encoding="utf-8")
    shutil.copytree(tools, destination / layout.TOOLS, symlinks=True)
    for name in (layout.ROOT_FILESYSTEM, layout.WORKDIR, layout.CARRY, layout.AGENT_BINARIES, layout.TRIAL, "run"):
        (destination / name).mkdir(exist_ok=True)
    # What a step's user may not see of the volume is not mounted; its own records are root's alone.
    (destination / "run").chmod(0o700)
