"""What holds for every pod that the trial waits for: it may be gone, may not start, may not end."""

from __future__ import annotations

from dataclasses import dataclass

from multistep.api.spec import AccessMode
from multistep.api.status import ErrorStatus
from multistep.engine.conditions import Reason
from multistep.engine.faults import infrastructure_fault
from multistep.engine.finish import fail
from multistep.engine.work import Pass, shorten
from multistep.pods.diagnosis import known_trouble, start_trouble
from multistep.pods.names import Role
from multistep.pods.outcome import ObservedPod
from multistep.task import Task

BACKSTOP_SECONDS = 120
"""How long after a pod's own deadline the operator gives up on a kubelet that does not end it."""


TROUBLE_SECONDS = 10
"""How long a pod may wait before the status says what for: a claim that is being bound, say, is no news."""


@dataclass(frozen=True)
class Awaited:
    """A pod that the trial waits for.

    Attributes:
        name, role, step_index: which pod.
        deadline_seconds: how long it may live; None where its agent has no limit.
        reason, message: what the status says while it runs.
    """

    name: str
    role: Role
    step_index: int | None
    deadline_seconds: float | None
    reason: Reason
    message: str


def finished_pod(work: Pass, task: Task, awaited: Awaited) -> ObservedPod | None:
    """Return the pod once nothing of it runs any more; None while the trial has to wait, or when it was ended here."""
    name, deadline = awaited.name, awaited.deadline_seconds
    pod = work.pod(awaited.role, awaited.step_index)
    if pod is None:
        infrastructure_fault(work, task, f"pod {name} is gone: somebody or something deleted it", name)
        return None
    if pod.node_name is not None:
        work.workspace.node_name = pod.node_name
    if not pod.over and pod.infrastructure_fault is not None:
        infrastructure_fault(work, task, f"pod {name}: {pod.infrastructure_fault}", name)
        return None
    if pod.over:
        exclusive = AccessMode.READ_WRITE_ONCE_POD in work.trial.spec.workspace.access_modes
        return pod if pod.phase_over or not exclusive else None
    if not pod.started:
        _wait_for_start(work, pod)
        return None
    if work.status.reason == Reason.POD_NOT_STARTED.value:
        work.set_phase(work.status.phase, awaited.reason, awaited.message)
    if deadline is not None and work.expired(pod.created_at, deadline + BACKSTOP_SECONDS):
        text = f"pod {name} runs on after its deadline: node {pod.node_name} does not answer"
        infrastructure_fault(work, task, text, name)
    return None


def _wait_for_start(work: Pass, pod: ObservedPod) -> None:
    seconds = work.trial.spec.start_deadline_seconds
    since = pod.waiting_since
    if since is None:
        return
    if not work.expired(since, seconds):
        if work.expired(since, TROUBLE_SECONDS):
            _show_trouble(work, pod)
        return
    step = work.current_step()
    error = ErrorStatus(
        type="PodStartError",
        message=shorten(f"pod {pod.name} did not start within {seconds} s: {start_trouble(pod)}"),
        step=step.name if step is not None and pod.step_index is not None else None,
        pod=pod.name,
    )
    fail(work, Reason.POD_START_FAILED, error)


def _show_trouble(work: Pass, pod: ObservedPod) -> None:
    """Let people see soon what a pod waits for, long before its deadline."""
    trouble = known_trouble(pod)
    if trouble is None:
        return
    message = f"pod {pod.name} has not started yet: {trouble}"
    if work.status.reason != Reason.POD_NOT_STARTED.value:
        work.event("Warning", Reason.POD_NOT_STARTED, message)
    work.set_phase(work.status.phase, Reason.POD_NOT_STARTED, message)
