"""GPUs and TPUs: what a container asks for, and on which nodes they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from multistep.pods.context import TrialContext
from multistep.task import Resources

TPU_RESOURCE = "google.com/tpu"
TPU_TYPE_LABEL = "cloud.google.com/gke-tpu-accelerator"
TPU_TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"

_TPU_TYPES = {
    "v3": "tpu-v3-slice",
    "v3-device": "tpu-v3-device",
    "v4": "tpu-v4-podslice",
    "v5e": "tpu-v5-lite-podslice",
    "v5p": "tpu-v5p-slice",
    "v6e": "tpu-v6e-slice",
    "trillium": "tpu-v6e-slice",
    "v7": "tpu7x",
    "ironwood": "tpu7x",
}
"""Short names, as tasks use them, of the values that GKE's node label has."""


@dataclass(frozen=True)
class Accelerators:
    """What a pod needs of accelerators.

    Attributes:
        amounts: resource name -> number, for the container that uses them.
        node_labels: labels that the node must have: key -> any of these values.
    """

    amounts: dict[str, str] = field(default_factory=dict)
    node_labels: dict[str, list[str]] = field(default_factory=dict)

    def add_to(self, spec: dict[str, Any]) -> None:
        """Add node affinity and tolerations to a pod's spec. Nodes with accelerators are tainted by their resource's name."""
        if self.amounts:
            tolerations = [{"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in self.amounts]
            spec["tolerations"] = [*spec.get("tolerations", []), *tolerations]
        if self.node_labels:
            affinity = dict(spec.get("affinity") or {})
            node_affinity = dict(affinity.get("nodeAffinity") or {})
            required = "requiredDuringSchedulingIgnoredDuringExecution"
            expressions = [{"key": key, "operator": "In", "values": values} for key, values in self.node_labels.items()]
            # The terms are alternatives: what the accelerators need has to stand in each.
            terms = (node_affinity.get(required) or {}).get("nodeSelectorTerms") or [{}]
            node_affinity[required] = {
                "nodeSelectorTerms": [
                    {**term, "matchExpressions": [*(term.get("matchExpressions") or []), *expressions]}
                    for term in terms
                ]
            }
            affinity["nodeAffinity"] = node_affinity
            spec["affinity"] = affinity


def accelerators(context: TrialContext, resources: Resources) -> Accelerators:
    """Return what an environment needs of GPUs and TPUs."""
    amounts: dict[str, str] = {}
    labels: dict[str, list[str]] = {}
    environment = context.spec.environment
    if resources.gpus:
        amounts[environment.gpu_resource_name] = str(resources.gpus)
        if resources.gpu_types:
            values = [environment.gpu_type_names.get(name, name) for name in resources.gpu_types]
            labels[environment.gpu_type_label] = values
    if resources.tpu is not None:
        amounts[TPU_RESOURCE] = str(prod(int(size) for size in resources.tpu.topology.split("x")))
        labels[TPU_TYPE_LABEL] = [_TPU_TYPES.get(resources.tpu.type.strip().lower(), resources.tpu.type)]
        labels[TPU_TOPOLOGY_LABEL] = [resources.tpu.topology]
    return Accelerators(amounts, labels)
