"""The engine: from a trial and what was observed of it to its next status and the actions to take.

`decide` is a function of its arguments. It may be called at any time, any number of times, after any crash: what it asks for is named by
(trial, attempt, step), and a trial that ended never changes its result again.
"""

from __future__ import annotations

from datetime import datetime

from multistep.api.status import ErrorStatus
from multistep.engine.conditions import ConditionType, Reason
from multistep.engine.finish import clean_up, fail
from multistep.engine.lifecycle import check_deadline, resume, suspend
from multistep.engine.prepare import prepare
from multistep.engine.regrade import regrade
from multistep.engine.start import start
from multistep.engine.steps import advance
from multistep.engine.types import (
    CreateObject,
    Decision,
    DeletePod,
    Observed,
    SetClaimOwners,
    Settings,
    TaskReady,
    Trial,
)
from multistep.engine.work import Pass, shorten
from multistep.pods.claim import claim_owners
from multistep.pods.snapshot import snapshot


def decide(trial: Trial, observed: Observed, now: datetime, settings: Settings) -> Decision:
    """Decide what to do with a trial now.

    Args:
        trial: the resource, spec and status, as read from the API server.
        observed: its task and its own pods, read after the trial.
        now: the time, aware and in UTC.
        settings: settings of the operator.

    Returns:
        The status to write, what to create before that and what to remove after it, the events to send, and when to look again.
    """
    work = Pass(trial, observed, now, settings)
    if work.status.observed_generation != trial.generation:
        work.status.observed_generation = trial.generation
        _follow_retain(work)
    if work.ended:
        regrade(work)
        clean_up(work)
        return work.decision()
    # What made it hold still is over: the spec could be read.
    work.status.conditions = [item for item in work.status.conditions if item.type != ConditionType.STALLED.value]
    if not trial.spec.suspend:
        resume(work)
    if work.status.workspace is not None:
        _go_on(work)
    elif not trial.spec.suspend:
        start(work)
    if not work.ended:
        if trial.spec.suspend:
            suspend(work)
        else:
            check_deadline(work)
    return work.decision()


def _go_on(work: Pass) -> None:
    """Go on with a trial that has started."""
    state = work.observed.task
    if not isinstance(state, TaskReady) or work.status.task is None:
        text = "the task's snapshot is gone and its source cannot be read any more"
        fail(work, Reason.TASK_CHANGED, ErrorStatus(type="TaskChangedError", message=text))
        return
    if state.task.digest != work.status.task.digest:
        text = "the task's snapshot is gone and its source is no longer what it was: create a new trial"
        fail(work, Reason.TASK_CHANGED, ErrorStatus(type="TaskChangedError", message=shorten(text)))
        return
    if not state.snapshotted:
        work.actions.append(CreateObject(snapshot(work.trial.identity, state.task, state.bundle)))
    # A slow second operator may have made a pod of an attempt that was given up since.
    given_up = [pod for pod in work.observed.pods if pod.attempt < work.status.attempt and not pod.deleting]
    work.actions += [DeletePod(pod.name) for pod in given_up]
    if prepare(work, state.task):
        advance(work, state.task)


def _follow_retain(work: Pass) -> None:
    """Let the claim follow `workspace.retain`, which may change at any time."""
    if work.status.workspace is not None:
        owners = claim_owners(work.trial.identity, retain=work.trial.spec.workspace.retain)
        work.actions.append(SetClaimOwners(work.status.workspace.claim_name, tuple(owners)))
