"""Termination messages of the runner: what a container says of itself at its end, parsed and bounded.

Only a verifier's report can carry a reward. A report that does not parse is an error, never a result.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from multistep.api.status import ContainerUser

Text = Annotated[str, Field(max_length=4096)]


class ReportError(ValueError):
    """A container ended without a report that can be read."""


class _Message(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


class Fault(_Message):
    """What went wrong in a container, by the runner's word."""

    type: Annotated[str, Field(pattern=r"^[A-Za-z]{1,64}$")]
    stage: Text | None = None
    exit_code: int | None = None
    output_base64: Text | None = None
    crlf: bool = False

    @property
    def output(self) -> str:
        """The end of the program's output, with bytes that are no text replaced."""
        return decode_text(self.output_base64)


class Stage(_Message):
    """One stage that ran."""

    name: Text
    started_at: datetime
    finished_at: datetime
    exit_code: int | None = None
    timed_out: bool = False


class StepReport(_Message):
    """The report of a step pod."""

    role: Literal["step"]
    stages: Annotated[list[Stage], Field(max_length=16)] = []
    error: Fault | None = None


class HandedReward(_Message):
    """The reward file as the verifier left it: inline when small, else a digest of what stands in the pod's log."""

    name: Literal["reward.json", "reward.txt"]
    kind: Literal["file", "directory", "other", "tooLarge"]
    size: int
    sha256: Text | None = None
    content_base64: Text | None = None

    @property
    def content(self) -> bytes | None:
        """The bytes of the file, or None when they have to be read from the log."""
        if self.content_base64 is None:
            return None
        try:
            return base64.b64decode(self.content_base64, validate=True)
        except binascii.Error as error:
            raise ReportError(f"the reward in the verifier's report is not base64: {error}") from error

    @property
    def in_log(self) -> bool:
        """Whether the content has to be read from the pod's log."""
        return self.kind == "file" and self.content_base64 is None


class VerifierReport(_Message):
    """The report of a verifier pod."""

    role: Literal["verifier"]
    stages: Annotated[list[Stage], Field(max_length=16)] = []
    error: Fault | None = None
    reward: HandedReward | None = None
    crlf: bool = False


class ProbeReport(_Message):
    """What the image's own user is."""

    role: Literal["probe"]
    user: ContainerUser


class SeedReport(_Message):
    """What was put on the volume, and the working directory."""

    role: Literal["seed"]
    workdir: Text | None = None
    directories: list[Text] = []
    error: Fault | None = None


Report = TypeVar("Report", StepReport, VerifierReport, ProbeReport, SeedReport)


def parse_report(model: type[Report], message: str | None) -> Report:
    """Parse a termination message.

    Raises:
        ReportError: the message is empty, no JSON, or not of this kind.
    """
    if not message:
        raise ReportError("the container left no report (an empty termination message)")
    try:
        return model.model_validate_json(message)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ReportError(f"the container's report cannot be read: {where}: {first['msg']}") from error


def decode_text(encoded: str | None, limit: int = 1024) -> str:
    """Decode the runner's base64 text; never fails, at most the last `limit` characters."""
    if not encoded:
        return ""
    try:
        raw = base64.b64decode(encoded)
    except binascii.Error:
        return ""
    return raw.decode("utf-8", errors="replace")[-limit:].strip()


def reward_from_log(log: str, sha256: str) -> bytes | None:
    """Find the framed reward file at the end of a verifier's log; None when it is not there whole.

    The caller must compare the digest: whatever else a test prints cannot pass for the reward.
    """
    begin = f"-----BEGIN MULTISTEP REWARD {sha256}-----"
    end = f"-----END MULTISTEP REWARD {sha256}-----"
    _, found, rest = log.rpartition(begin)
    if not found or end not in rest:
        return None
    try:
        return base64.b64decode("".join(rest.split(end, 1)[0].split()), validate=True)
    except binascii.Error:
        return None
