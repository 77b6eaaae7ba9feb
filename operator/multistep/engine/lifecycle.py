"""Suspension and the trial's own deadline."""

from __future__ import annotations

from datetime import datetime

from multistep.api.status import TERMINAL_PHASES, ErrorStatus, MultiStepTrialStatus, Phase
from multistep.engine.conditions import ConditionType, Reason, find, is_true, set_condition
from multistep.engine.finish import fail
from multistep.engine.work import Pass, shorten


def suspend(work: Pass) -> None:
    """Show the trial as suspended, once none of its pods runs any more."""
    running = work.running_pods()
    if running:
        work.status.message = f"suspended as soon as pod {running[0].name} ends"
        return
    if not is_true(work.status, ConditionType.SUSPENDED):
        work.event("Normal", Reason.SUSPENDED, "the trial is suspended; set spec.suspend to false to go on")
    message = "set spec.suspend to false to go on"
    set_condition(work.status, ConditionType.SUSPENDED, True, Reason.SUSPENDED, message, work.now)
    work.set_phase(Phase.SUSPENDED, Reason.SUSPENDED, message)


def resume(work: Pass) -> None:
    """Take a suspension back, and leave its time out of the deadline."""
    condition = find(work.status, ConditionType.SUSPENDED)
    if condition is None or not is_true(work.status, ConditionType.SUSPENDED):
        return
    if work.status.start_time is not None:
        seconds = round((work.now - condition.last_transition_time).total_seconds())
        work.status.suspended_seconds = (work.status.suspended_seconds or 0) + max(0, seconds)
        workspace = work.status.workspace
        phase = Phase.RUNNING if workspace is not None and workspace.workdir is not None else Phase.PREPARING
        work.set_phase(phase, Reason.RESUMED, "the trial goes on")
    set_condition(work.status, ConditionType.SUSPENDED, False, Reason.RESUMED, "the trial goes on", work.now)
    work.event("Normal", Reason.RESUMED, "the trial goes on where it stopped")


def stall(status: MultiStepTrialStatus, generation: int, message: str, now: datetime) -> MultiStepTrialStatus:
    """Return the status of a trial whose spec this operator cannot read: it holds still until the spec, or the operator, is another."""
    if status.phase in TERMINAL_PHASES:
        return status
    result = status.model_copy(deep=True)
    result.observed_generation = generation
    result.reason, result.message = Reason.SPEC_INVALID.value, shorten(message)
    set_condition(
        result, ConditionType.STALLED, True, Reason.SPEC_INVALID, shorten(message), now.replace(microsecond=0)
    )
    return result


def check_deadline(work: Pass) -> None:
    """End the trial when `activeDeadlineSeconds` are over; computed from stored times, whatever happened to the operator."""
    seconds, started = work.trial.spec.active_deadline_seconds, work.status.start_time
    if seconds is None or started is None:
        return
    if work.expired(started, seconds + (work.status.suspended_seconds or 0)):
        step = work.current_step()
        error = ErrorStatus(
            type="DeadlineExceededError",
            message=f"the trial took longer than spec.activeDeadlineSeconds ({seconds} s)",
            step=step.name if step is not None and step.start_time is not None else None,
        )
        fail(work, Reason.DEADLINE_EXCEEDED, error)
