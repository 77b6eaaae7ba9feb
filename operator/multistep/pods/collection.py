"""What the runner collects of a step, as its flags: hooks and artifacts, one text of several lines each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath

from multistep.pods.environment import literal
from multistep.task import Artifact, ArtifactConfig, CollectConfig, collection_plan
from multistep.task.artifacts import CONVENTION_SOURCE


def artifact_arguments(artifacts: Sequence[Artifact]) -> list[str]:
    """Return the flags of the artifacts. Their entries of the manifest have the form of Harbor's."""
    return [literal(f"--artifact={_artifact(artifact, skipped)}") for artifact, skipped in collection_plan(artifacts)]


def place_arguments(artifacts: Sequence[Artifact]) -> list[str]:
    """Return the flags by which a separate verifier gets the artifacts, each at its source path."""
    return [
        literal(f"--place={artifact.output}\n{artifact.source}")
        for artifact, skipped in collection_plan(artifacts)
        if not skipped
    ]


def collect_arguments(hooks: Sequence[CollectConfig], default_user: str) -> list[str]:
    """Return the flags of the collect hooks; a hook without a user runs as the image's own."""
    return [
        literal(f"--collect={hook.timeout_sec:f}\n{default_user if hook.user is None else hook.user}\n{hook.command}")
        for hook in hooks
    ]


def _artifact(artifact: ArtifactConfig, skipped: bool) -> str:
    in_place = artifact.source.rstrip("/") == CONVENTION_SOURCE and not artifact.destination and not artifact.exclude
    # What was skipped was not looked at: whether it is a directory is guessed, as the reference does.
    guessed = "file" if PurePosixPath(artifact.source).suffix else "directory"
    what = f"skipped-{guessed}" if skipped else "in-place" if in_place else "collect"
    exclude = [] if skipped and guessed == "file" else artifact.exclude
    head = f'"source":{json.dumps(artifact.source)},"destination":{json.dumps(f"artifacts/{artifact.output}")}'
    tail = f'"service":{json.dumps(artifact.service)},"exclude":{json.dumps(exclude)}'
    return "\n".join([what, artifact.source, str(artifact.output), head, tail, *artifact.exclude])
