"""What happens when the API server refuses a child: an invalid manifest ends the trial, a quota makes it wait."""

from __future__ import annotations

from datetime import datetime

from multistep.api.status import ErrorStatus
from multistep.engine.conditions import Reason
from multistep.engine.finish import fail
from multistep.engine.types import Decision, Observed, Rejection, Settings, Trial
from multistep.engine.work import Pass, shorten

RETRY_SECONDS = 10


def reject(trial: Trial, observed: Observed, rejection: Rejection, now: datetime, settings: Settings) -> Decision:
    """Decide anew after a refusal, from the trial as it was: nothing of the refused decision is kept."""
    work = Pass(trial, observed, now, settings)
    work.status.observed_generation = trial.generation
    work.status.waiting_since = work.status.waiting_since or work.now
    text = f"Kubernetes refuses {rejection.kind} {rejection.name}: {rejection.message}"
    error = ErrorStatus(type="PodStartError", message=shorten(text))
    if rejection.permanent:
        fail(work, Reason.POD_REJECTED, error)
    elif work.expired(work.status.waiting_since, trial.spec.start_deadline_seconds):
        fail(work, Reason.POD_START_FAILED, error)
    else:
        work.status.reason, work.status.message = Reason.WAITING_FOR_ADMISSION.value, shorten(text)
        work.wake_in(RETRY_SECONDS)
    return work.decision()
