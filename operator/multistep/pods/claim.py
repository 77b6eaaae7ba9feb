"""The trial's PersistentVolumeClaim."""

from __future__ import annotations

from multistep.api.spec import Workspace
from multistep.pods.common import Manifest, owner_reference
from multistep.pods.names import TrialIdentity, claim_name, labels


def claim_owners(trial: TrialIdentity, *, retain: bool) -> list[Manifest]:
    """Return the claim's owner references: none when it is to outlive the trial."""
    return [] if retain else [owner_reference(trial)]


def claim(trial: TrialIdentity, attempt: int, workspace: Workspace) -> Manifest:
    """Return the manifest of the claim of an attempt."""
    spec: Manifest = {
        "accessModes": [mode.value for mode in workspace.access_modes],
        "resources": {"requests": {"storage": workspace.size}},
    }
    if workspace.storage_class_name is not None:
        spec["storageClassName"] = workspace.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim_name(trial, attempt),
            "namespace": trial.namespace,
            "labels": labels(trial, attempt),
            "ownerReferences": claim_owners(trial, retain=workspace.retain),
        },
        "spec": spec,
    }
