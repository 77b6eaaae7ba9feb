"""Why a pod does not start, in one sentence, with the kubelet's or the scheduler's own words."""

from __future__ import annotations

from multistep.pods.outcome import ContainerOutcome, ObservedPod

_ORDINARY = frozenset({"ContainerCreating", "PodInitializing"})

_ADVICE = {
    "ErrImagePull": "check the image's name and podTemplate.imagePullSecrets",
    "ImagePullBackOff": "check the image's name and podTemplate.imagePullSecrets",
    "ErrImageNeverPull": "the image is not on the node: load it, or set podTemplate.imagePullPolicy",
    "InvalidImageName": "correct the image's name",
    "CreateContainerConfigError": "create the missing Secret or ConfigMap, or correct its name",
}


def known_trouble(pod: ObservedPod) -> str | None:
    """Say what keeps a pod from starting where Kubernetes says so; None where it may just take its time."""
    if pod.unschedulable is not None:
        return f"the pod cannot be scheduled: {pod.unschedulable}"
    # Init containers first, since the others wait for them.
    for container in (*pod.init_containers, *pod.containers):
        if not container.started and container.reason is not None and container.reason not in _ORDINARY:
            return _container_trouble(container)
    return None


def start_trouble(pod: ObservedPod) -> str:
    """Say why a pod has not started, with a guess where Kubernetes says nothing."""
    trouble = known_trouble(pod)
    if trouble is not None:
        return trouble
    if pod.node_name is None:
        return "the scheduler has not given the pod a node yet (no word from it why)"
    return f"the kubelet of node {pod.node_name} has not started the pod's containers yet (volume or image still on the way?)"


def _container_trouble(container: ContainerOutcome) -> str:
    advice = _ADVICE.get(container.reason or "")
    text = f"container {container.name} (image {container.image}): {container.reason}"
    if container.message:
        text += f": {container.message}"
    return f"{text}; {advice}" if advice else text
