"""Artifacts: what is collected from the agent's environment, and where it goes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import PurePosixPath

from pydantic import Field, field_validator, model_validator

from multistep.task.network import FormatModel

CONVENTION_SOURCE = "/logs/artifacts"
"""The directory whose content is always collected."""

MAIN_SERVICE = "main"
_SERVICE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*\n?")
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")


def check_service(name: str) -> str:
    """Return the name of a compose service.

    Raises:
        ValueError: it is none.
    """
    name = name.strip()
    if not _SERVICE.fullmatch(name):
        raise ValueError("a service is named with letters, digits, hyphens, underscores and dots")
    return name


class ArtifactConfig(FormatModel):
    """One thing to collect: a file or a directory."""

    source: str = Field(description="Path in the container.")
    destination: str | None = Field(
        default=None, description="Path below the step's artifacts; the source's own when absent."
    )
    exclude: list[str] = Field(default_factory=list, description="Patterns that are left out of a directory.")
    service: str | None = Field(default=None, description="Compose service to collect from.")

    @field_validator("service")
    @classmethod
    def _check_service(cls, value: str | None) -> str | None:
        return None if value is None else check_service(value)

    @field_validator("source")
    @classmethod
    def _check_source(cls, value: str) -> str:
        if ".." in PurePosixPath(value).parts:
            raise ValueError("an artifact's source must not hold `..`")
        return value

    @field_validator("destination")
    @classmethod
    def _check_destination(cls, value: str | None) -> str | None:
        if not value:
            return None
        path = PurePosixPath(value)
        if "\\" in value:
            raise ValueError("an artifact's destination is written with slashes, not backslashes")
        if path.is_absolute():
            raise ValueError("an artifact's destination is relative to the step's artifacts")
        if not path.parts:
            raise ValueError("an artifact's destination must name a file or a directory")
        if ".." in path.parts:
            raise ValueError("an artifact's destination must not hold `..`")
        if value.rstrip("/") == "manifest.json":
            raise ValueError("manifest.json is the collection's own file: choose another destination")
        return value

    @model_validator(mode="after")
    def _check_service_source(self) -> ArtifactConfig:
        absolute = self.source.startswith("/") or _DRIVE.match(self.source) is not None
        if self.service not in (None, MAIN_SERVICE) and not absolute:
            raise ValueError(f"an artifact of service {self.service} needs an absolute source")
        return self

    @property
    def output(self) -> PurePosixPath:
        """The path below the step's artifacts."""
        parts = PurePosixPath(self.destination or self.source).parts
        return PurePosixPath(*(part for part in parts if part not in ("/", "..")))

    @property
    def of_main(self) -> bool:
        """Whether it comes from the agent's own container."""
        return self.service in (None, MAIN_SERVICE)


Artifact = str | ArtifactConfig


def collected(entries: Sequence[Artifact]) -> list[ArtifactConfig]:
    """Return what is collected, in order: the convention directory first, unless an entry names it."""
    result = [ArtifactConfig(source=entry) if isinstance(entry, str) else entry for entry in entries]
    if not any(entry.of_main and entry.source.rstrip("/") == CONVENTION_SOURCE for entry in result):
        result.insert(0, ArtifactConfig(source=CONVENTION_SOURCE))
    return result


def collisions(entries: Sequence[Artifact]) -> list[tuple[ArtifactConfig, ArtifactConfig]]:
    """Return pairs whose outputs overlap; the earlier one wins and the later is skipped when they are collected."""
    return [
        (first, second)
        for first, second in combinations(collected(entries), 2)
        if _overlap(first.output, second.output) and not _covers(first, second)
    ]


def _overlap(first: PurePosixPath, second: PurePosixPath) -> bool:
    return first == second or first in second.parents or second in first.parents


def _covers(first: ArtifactConfig, second: ArtifactConfig) -> bool:
    """Whether the first collects the second's source to the same place anyway."""
    if (first.service or MAIN_SERVICE) != (second.service or MAIN_SERVICE):
        return False
    source, other = PurePosixPath(first.source), PurePosixPath(second.source)
    if not other.is_relative_to(source):
        return False
    if source == other and first.output == second.output:
        return first.exclude == second.exclude
    return not first.exclude and second.output == first.output / other.relative_to(source)


def collection_plan(entries: Sequence[Artifact]) -> list[tuple[ArtifactConfig, bool]]:
    """Return what is collected, in order, and whether it is skipped: because an earlier entry claims its place, or the manifest does."""
    claimed: list[ArtifactConfig] = []
    plan = []
    for artifact in collected(entries):
        taken = any(
            _overlap(prior.output, artifact.output)
            and not (prior.source == artifact.source and _covers(prior, artifact))
            for prior in claimed
        )
        skipped = taken or artifact.output.parts[:1] == ("manifest.json",)
        if not skipped:
            claimed.append(artifact)
        plan.append((artifact, skipped))
    return plan
