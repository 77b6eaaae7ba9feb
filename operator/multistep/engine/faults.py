"""Infrastructure faults: the trial starts again from a clean volume, up to `backoffLimit` times, and is never graded for them."""

from __future__ import annotations

from multistep.api.status import AttemptStatus, ErrorStatus
from multistep.engine.conditions import Reason
from multistep.engine.finish import fail
from multistep.engine.start import begin_attempt
from multistep.engine.types import DeleteClaim, DeletePodsOfAttempt
from multistep.engine.work import Pass, shorten
from multistep.pods.names import claim_name
from multistep.task import Task


def infrastructure_fault(work: Pass, task: Task, message: str, pod: str | None) -> None:
    """Start the next attempt, or end the trial where none is left."""
    status, limit = work.status, work.trial.spec.backoff_limit
    current = work.current_step()
    error = ErrorStatus(
        type="InfrastructureError",
        message=shorten(message),
        step=current.name if current is not None and current.start_time is not None else None,
        pod=pod,
    )
    if status.attempt > limit:
        advice = "" if limit else "; spec.backoffLimit lets a trial start again after such faults"
        error.message += advice
        fail(work, Reason.INFRASTRUCTURE_FAULT, error)
        return
    status.previous_attempts.append(AttemptStatus(attempt=status.attempt, completion_time=work.now, error=error))
    status.attempt += 1
    begin_attempt(work, task)
    remove_attempt(work, status.attempt - 1)
    work.event(
        "Warning", Reason.RETRYING, f"{message}; attempt {status.attempt} of {limit + 1} starts from a clean volume"
    )


def remove_attempt(work: Pass, attempt: int) -> None:
    """Remove what an attempt that was given up left: pods before their claim, which pvc-protection holds as long as a pod names it."""
    work.actions.append(DeletePodsOfAttempt(attempt))
    work.actions.append(DeleteClaim(claim_name(work.trial.identity, attempt)))
