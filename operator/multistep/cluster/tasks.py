"""Reading a trial's task: from its snapshot once there is one, else from its source."""

from __future__ import annotations

import asyncio
import base64
import binascii

from multistep.api.spec import ConfigMapTask, InlineTask
from multistep.cluster import paths
from multistep.cluster.client import Client
from multistep.engine.types import TaskInvalid, TaskReady, TaskUnavailable, Trial
from multistep.pods.names import snapshot_name
from multistep.pods.prepare import BUNDLE_KEY, config_map_parts
from multistep.pods.snapshot import task_from_snapshot
from multistep.task import (
    BundleError,
    FileTree,
    Limits,
    Problem,
    Task,
    TaskTreeError,
    load_task,
    pack,
    tree_from_bundle,
    tree_from_inline,
)

TaskState = TaskReady | TaskInvalid | TaskUnavailable

UNPACKED_BYTES = 128 * 1024 * 1024
"""A bundle is unpacked in the operator's memory, one at a time."""

_CACHED_TASKS = 2_000


class TaskReader:
    """Reads tasks; keeps those that have a snapshot, which never changes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cache: dict[str, Task] = {}
        self._unpacking = asyncio.Semaphore(1)

    def forget(self, uid: str) -> None:
        """Drop the task of a trial that ended or is gone."""
        self._cache.pop(uid, None)

    async def read(self, trial: Trial) -> TaskState:
        """Read the task of a trial."""
        uid = trial.identity.uid
        if uid in self._cache:
            return TaskReady(self._cache[uid], snapshotted=True)
        path = paths.core(trial.identity.namespace, "configmaps", snapshot_name(trial.identity))
        config_map = await self._client.get_or_none(path)
        if config_map is None:
            return await self._read_source(trial)
        try:
            task = task_from_snapshot(config_map)
        except ValueError as error:
            return TaskUnavailable(f"the task's snapshot {snapshot_name(trial.identity)} cannot be read: {error}")
        if len(self._cache) >= _CACHED_TASKS:
            self._cache.pop(next(iter(self._cache)))
        self._cache[uid] = task
        return TaskReady(task, snapshotted=True)

    async def _read_source(self, trial: Trial) -> TaskState:
        source, disabled = trial.spec.task, trial.spec.verifier.disabled
        async with self._unpacking:
            if source.inline is not None:
                return await asyncio.to_thread(_read_inline, source.inline, disabled)
            if source.config_map is not None:
                parts = await self._config_map_parts(trial.identity.namespace, source.config_map)
                return (
                    parts
                    if isinstance(parts, TaskUnavailable)
                    else await asyncio.to_thread(_read_bundle, parts, disabled)
                )
        return TaskInvalid((Problem("spec.task", None, None, "give exactly one of inline and configMap"),))

    async def _config_map_parts(self, namespace: str, source: ConfigMapTask) -> bytes | TaskUnavailable:
        parts = []
        for name in config_map_parts(source.name, source.parts):
            config_map = await self._client.get_or_none(paths.core(namespace, "configmaps", name))
            if config_map is None:
                return TaskUnavailable(f"ConfigMap {name} does not exist in namespace {namespace}")
            data = (config_map.get("binaryData") or {}).get(BUNDLE_KEY)
            if data is None:
                return TaskUnavailable(
                    f"ConfigMap {name} has no {BUNDLE_KEY} in binaryData: make it with `multistep pack`"
                )
            try:
                parts.append(base64.b64decode(data))
            except binascii.Error as error:
                return TaskUnavailable(f"{BUNDLE_KEY} of ConfigMap {name} is not base64: {error}")
        return b"".join(parts)


def _read_inline(source: InlineTask, verification_disabled: bool) -> TaskState:
    try:
        tree = tree_from_inline(source.files, source.modes)
    except TaskTreeError as error:
        return TaskInvalid(tuple(error.problems))
    return _load(tree, pack(tree), verification_disabled)


def _read_bundle(data: bytes, verification_disabled: bool) -> TaskState:
    try:
        tree = tree_from_bundle(data, Limits(unpacked_bytes=UNPACKED_BYTES))
    except BundleError as error:
        return TaskInvalid((Problem(BUNDLE_KEY, None, None, str(error)),))
    return _load(tree, None, verification_disabled)


def _load(tree: FileTree, bundle: bytes | None, verification_disabled: bool) -> TaskState:
    loaded = load_task(tree, verification_disabled=verification_disabled)
    if loaded.task is None or loaded.problems:
        return TaskInvalid(loaded.problems)
    return TaskReady(loaded.task, bundle, warnings=loaded.warnings)
