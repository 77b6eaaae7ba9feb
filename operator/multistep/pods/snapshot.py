"""The ConfigMap that holds the task as it was when the trial started, so that later edits of its source change nothing."""

from __future__ import annotations

import base64

from multistep.pods.common import Manifest, owner_reference
from multistep.pods.names import TrialIdentity, labels, snapshot_name
from multistep.pods.prepare import BUNDLE_KEY
from multistep.task import Task

TASK_KEY = "task.json"
MAXIMUM_BYTES = 1_000_000
"""What fits into a ConfigMap's data (1 MiB), less the object's own names."""


def snapshot(trial: TrialIdentity, task: Task, bundle: bytes | None) -> Manifest:
    """Return the snapshot ConfigMap: the parsed task, and the bundle where the task is inline."""
    result: Manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": snapshot_name(trial),
            "namespace": trial.namespace,
            "labels": labels(trial, 1),
            "ownerReferences": [owner_reference(trial)],
        },
        "immutable": True,
        "data": {TASK_KEY: task.model_dump_json(exclude_defaults=True)},
    }
    if bundle is not None:
        result["binaryData"] = {BUNDLE_KEY: base64.b64encode(bundle).decode()}
    return result


def task_from_snapshot(config_map: Manifest) -> Task:
    """Read the task back from its snapshot.

    Raises:
        ValueError: the ConfigMap is not such a snapshot.
    """
    return Task.model_validate_json((config_map.get("data") or {}).get(TASK_KEY, ""))
