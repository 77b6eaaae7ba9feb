"""What holds for every pod that the trial waits for: it may be gone, may not start, may not end."""

from __future__ import annotations

from dataclasses import dataclass

from multistep.api.spec import AccessMode
from multistep.api.status import ErrorStatus
from multistep.engine.conditions import Reason
from multistep.engine.finish import fail
from multistep.engine.outcomes import InfrastructureFault
from multistep.engine.work import Pass, shorten
from multistep.pods.diagnosis import known_trouble, start_trouble
from multistep.pods.outcome import ObservedPod

BACKSTOP_SECONDS = 120
"""How long after a pod's own deadline the operator gives up on a kubelet that does not end it."""


TROUBLE_SECONDS = 10
"""How long a pod may wait before the status says what for: a claim that is being bound, say, is no news."""


@dataclass(frozen=True)
class Awaited:
    """A pod that the trial waits for.

    Attributes:
        name: which pod.
        deadline_seconds: how long it may live; None where its agent has no limit.
        reason, message: what the status says while it runs.
    """

    name: str
    deadline_seconds: float | None
    reason: Reason
    message: str


@dataclass(frozen=True)
class NotStarted:
    """A pod that had its time to start and did not; the message says what Kubernetes says of it."""

    message: str


@dataclass(frozen=True)
class Waiting:
    """A pod whose end is still to come."""

    pod: ObservedPod


def pod_end(
    work: Pass, name: str, deadline_seconds: float | None
) -> ObservedPod | InfrastructureFault | NotStarted | Waiting:
    """Return the pod once nothing of it runs any more, or why that will not be."""
    pod = work.pod(name)
    if pod is None:
        return InfrastructureFault(f"pod {name} is gone: somebody or something deleted it")
    if pod.over:
        exclusive = AccessMode.READ_WRITE_ONCE_POD in work.trial.spec.workspace.access_modes
        return pod if pod.phase_over or not exclusive else Waiting(pod)
    if pod.infrastructure_fault is not None:
        return InfrastructureFault(f"pod {name}: {pod.infrastructure_fault}")
    if not pod.started:
        seconds = work.trial.spec.start_deadline_seconds
        if pod.waiting_since is not None and work.expired(pod.waiting_since, seconds):
            return NotStarted(f"pod {name} did not start within {seconds} s: {start_trouble(pod)}")
    elif deadline_seconds is not None and work.expired(pod.created_at, deadline_seconds + BACKSTOP_SECONDS):
        return InfrastructureFault(f"pod {name} runs on after its deadline: node {pod.node_name} does not answer")
    return Waiting(pod)


def finished_pod(work: Pass, awaited: Awaited) -> ObservedPod | InfrastructureFault | None:
    """Return how the pod ended; None while the trial has to wait, or when it was ended here because the pod did not start."""
    end = pod_end(work, awaited.name, awaited.deadline_seconds)
    pod = end.pod if isinstance(end, Waiting) else end
    if isinstance(pod, ObservedPod) and pod.node_name is not None:
        work.workspace.node_name = pod.node_name
    match end:
        case NotStarted(message):
            step = work.current_step()
            named = step.name if step is not None and step.start_time is not None else None
            error = ErrorStatus(type="PodStartError", message=shorten(message), step=named, pod=awaited.name)
            fail(work, Reason.POD_START_FAILED, error)
        case Waiting(waiting):
            _tell(work, waiting, awaited)
        case _:
            return end
    return None


def _tell(work: Pass, pod: ObservedPod, awaited: Awaited) -> None:
    """Let people see soon what a pod waits for, long before its deadline."""
    if pod.started:
        if work.status.reason == Reason.POD_NOT_STARTED.value:
            work.set_phase(work.status.phase, awaited.reason, awaited.message)
        return
    trouble, since = known_trouble(pod), pod.waiting_since
    if trouble is None or since is None or not work.expired(since, TROUBLE_SECONDS):
        return
    message = f"pod {pod.name} has not started yet: {trouble}"
    if work.status.reason != Reason.POD_NOT_STARTED.value:
        work.event("Warning", Reason.POD_NOT_STARTED, message)
    work.set_phase(work.status.phase, Reason.POD_NOT_STARTED, message)
