"""What all pods of a trial share: metadata, scheduling, security and the task's container."""

from __future__ import annotations

from typing import Any

from multistep.api.common import API_VERSION, KIND
from multistep.api.spec import AccessMode
from multistep.pods import layout
from multistep.pods.accelerators import Accelerators
from multistep.pods.context import TrialContext
from multistep.pods.names import ANNOTATION_STEP_NAME, Role, TrialIdentity, labels, network_labels, pod_name
from multistep.task import NetworkPolicy, Resources

Manifest = dict[str, Any]

RUNNER = [f"{layout.TOOLS_MOUNT}/busybox", "sh", f"{layout.TOOLS_MOUNT}/runner/runner.sh"]
"""How a task's container starts the runner: with our own static shell, never the image's."""

MAIN_CONTAINER = "main"
_TERMINATION_MESSAGE = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_MAX_DEADLINE = 2**31 - 1


def owner_reference(trial: TrialIdentity) -> Manifest:
    """Return the owner reference by which the garbage collector removes a child with its trial.

    `blockOwnerDeletion` is left out: it would need rights on the trial's finalizers and hold back a foreground deletion.
    """
    return {"apiVersion": API_VERSION, "kind": KIND, "name": trial.name, "uid": trial.uid, "controller": True}


def container(context: TrialContext, name: str, arguments: list[str], mounts: list[layout.Mount]) -> Manifest:
    """Return a container of the task's image that runs the runner as root with the given arguments."""
    security = dict(context.spec.pod_template.container_security_context or {})
    security.update({"runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False})
    result: Manifest = {
        "name": name,
        "image": context.image,
        "command": RUNNER,
        "args": arguments,
        "volumeMounts": [layout.TOOLS_VOLUME_MOUNT, *mounts],
        "securityContext": security,
        **_TERMINATION_MESSAGE,
    }
    if context.spec.pod_template.image_pull_policy is not None:
        result["imagePullPolicy"] = context.spec.pod_template.image_pull_policy.value
    return result


def resources(effective: Resources, accelerators: Accelerators | None = None) -> Manifest:
    """Return the resources of an environment: what the task names is both requested and the limit."""
    amounts: dict[str, str] = dict(accelerators.amounts) if accelerators is not None else {}
    if effective.cpus:
        amounts["cpu"] = str(effective.cpus)
    if effective.memory_mb:
        amounts["memory"] = f"{effective.memory_mb}Mi"
    if effective.storage_mb:
        amounts["ephemeral-storage"] = f"{effective.storage_mb}Mi"
    return {"requests": amounts, "limits": amounts} if amounts else {}


def pod(
    context: TrialContext,
    role: Role,
    containers: list[Manifest],
    *,
    step_index: int | None = None,
    number: int = 1,
    init_containers: list[Manifest] | None = None,
    volumes: list[Manifest] | None = None,
    deadline_seconds: float | None = None,
    network: NetworkPolicy | None = None,
    accelerators: Accelerators | None = None,
) -> Manifest:
    """Return a pod of the trial.

    Args:
        context: the trial's.
        role: what the pod is for.
        containers: its containers.
        step_index: the step's, counted from 1; None for the prepare pod.
        number: which pod of its role this is, for this step.
        init_containers: its init containers.
        volumes: volumes beside the trial's.
        deadline_seconds: bounds its whole life, counted from when the kubelet accepts it.
        network: what it may reach; None means all.
        accelerators: where GPUs or TPUs that a container asks for are.
    """
    template = context.spec.pod_template
    annotations = dict(template.annotations)
    if step_index is not None:
        annotations[ANNOTATION_STEP_NAME] = context.step(step_index).name
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": containers,
        "volumes": [
            {"name": layout.VOLUME, "persistentVolumeClaim": {"claimName": context.workspace.claim_name}},
            *(volumes or []),
        ],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, **(template.security_context or {})},
        **_scheduling(context),
    }
    if accelerators is not None:
        accelerators.add_to(spec)
    if init_containers:
        spec["initContainers"] = init_containers
    if deadline_seconds is not None and deadline_seconds < _MAX_DEADLINE:
        spec["activeDeadlineSeconds"] = max(1, round(deadline_seconds))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(context.identity, context.attempt, role, step_index, number),
            "namespace": context.identity.namespace,
            "labels": {
                **template.labels,
                **labels(context.identity, context.attempt, role, step_index),
                **network_labels(network),
            },
            "annotations": annotations,
            "ownerReferences": [owner_reference(context.identity)],
        },
        "spec": spec,
    }


def _scheduling(context: TrialContext) -> Manifest:
    template = context.spec.pod_template
    document = template.model_dump(
        by_alias=True,
        exclude_none=True,
        mode="json",
        include={
            "node_selector",
            "tolerations",
            "image_pull_secrets",
            "runtime_class_name",
            "priority_class_name",
            "service_account_name",
            "scheduler_name",
        },
    )
    result: Manifest = {key: value for key, value in document.items() if value}
    affinity = _with_preferred_node(template.affinity, context)
    if affinity:
        result["affinity"] = affinity
    return result


def _with_preferred_node(affinity: Manifest | None, context: TrialContext) -> Manifest | None:
    """Add a soft preference for the node of the last pod, where the volume and the image already are."""
    node = context.workspace.node_name
    if node is None or context.spec.workspace.access_modes == [AccessMode.READ_WRITE_MANY]:
        return affinity
    preference = {
        "weight": 100,
        "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
    }
    result = dict(affinity or {})
    node_affinity = dict(result.get("nodeAffinity") or {})
    preferred = list(node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or [])
    node_affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [*preferred, preference]
    result["nodeAffinity"] = node_affinity
    return result
