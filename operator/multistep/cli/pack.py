"""`multistep pack`: a task's directory as ConfigMaps and a MultiStepTrial."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from multistep.api.common import API_VERSION, KIND
from multistep.api.spec import AgentName, MultiStepTrialSpec
from multistep.cli.load import read_task
from multistep.pods.prepare import BUNDLE_KEY, config_map_parts
from multistep.task import Problem, pack, split

PART_BYTES = 180_000
"""Bytes of a bundle in one ConfigMap. The limit of a ConfigMap is 1 MiB, but client-side `kubectl apply` keeps a copy of the object in an
annotation of at most 256 KiB, and base64 makes a third more of the bytes."""

MAXIMUM_PARTS = 64


class PackError(Exception):
    """The task cannot be packed; the message says why, one line per problem."""


@dataclass(frozen=True)
class Packed:
    """What `pack` prints, and what it warns of."""

    manifests: list[dict[str, Any]]
    warnings: tuple[Problem, ...]


def pack_manifests(
    directory: Path, *, name: str | None, agent: str, image: str | None, namespace: str | None, command: list[str]
) -> Packed:
    """Make the manifests of a task's directory.

    Raises:
        PackError: the task is too large, or agent and command do not fit.
        TaskDirectoryError: the task cannot be read.
    """
    read = read_task(directory)
    parts = split(pack(read.tree), PART_BYTES)
    if len(parts) > MAXIMUM_PARTS:
        raise PackError(f"the bundle has {len(parts)} parts of {PART_BYTES} bytes; {MAXIMUM_PARTS} is the limit")
    base = object_name(name or read.task.name or directory.resolve().name)
    # The digest in the name: a changed task is another object, and a running trial never sees its bundle change.
    bundle_name = f"{base}-{hashlib.sha256(read.task.digest.encode()).hexdigest()[:8]}"
    metadata = {"namespace": namespace} if namespace else {}
    manifests: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": part_name, **metadata},
            "immutable": True,
            "binaryData": {BUNDLE_KEY: base64.b64encode(part).decode()},
        }
        for part_name, part in zip(config_map_parts(bundle_name, len(parts)), parts, strict=True)
    ]
    source: dict[str, Any] = {"name": bundle_name}
    if len(parts) > 1:
        source["parts"] = len(parts)
    spec: dict[str, Any] = {"agent": {"name": agent}, "task": {"configMap": source}}
    if command:
        spec["agent"]["command"] = command
    if image:
        spec["environment"] = {"image": image}
    _check(spec)
    manifests.append({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": base, **metadata}, "spec": spec})
    return Packed(manifests, read.warnings)


def render(manifests: list[dict[str, Any]]) -> str:
    """Return manifests as one YAML stream."""
    return yaml.safe_dump_all(manifests, sort_keys=False, explicit_start=True, allow_unicode=True)


def object_name(text: str) -> str:
    """Make a valid object name of any text, at most 52 characters.

    Raises:
        PackError: nothing of the text can stand in a name.
    """
    name = re.sub(r"[^a-z0-9]+", "-", text.rsplit("/", 1)[-1].lower()).strip("-")[:52].strip("-")
    if not name:
        raise PackError(f"no name can be made of {text!r}: give one with --name")
    return name


def _check(spec: dict[str, Any]) -> None:
    names = [agent.value for agent in AgentName]
    if spec["agent"]["name"] not in names:
        raise PackError(f"there is no agent {spec['agent']['name']!r}: it is one of {', '.join(names)}")
    if (spec["agent"]["name"] == AgentName.COMMAND) != ("command" in spec["agent"]):
        raise PackError("the command agent needs its program after `--`, and no other agent takes one")
    try:
        MultiStepTrialSpec.model_validate(spec)
    except ValidationError as error:
        raise PackError(str(error)) from error
