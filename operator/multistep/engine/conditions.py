"""The trial's conditions, and every reason that they and the events use.

`Complete` and `Failed` are for `kubectl wait`, as a Job has them; `Reconciling` and `Stalled` are what kstatus (Flux, Argo CD) looks at.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from multistep.api.status import Condition, ConditionStatus, MultiStepTrialStatus


class ConditionType(StrEnum):
    """Types of conditions."""

    TASK_VALID = "TaskValid"
    """True: the task can run. False: it cannot, the message names file, key and remedy. Unknown: its source is not there."""
    COMPLETE = "Complete"
    """True once the trial ended with an answer: every step ran, or min_reward stopped it."""
    FAILED = "Failed"
    """True once the trial ended without an answer."""
    SUSPENDED = "Suspended"
    """True while the trial is suspended and none of its pods runs."""
    RECONCILING = "Reconciling"
    """True while the trial is on its way; False when it ended."""
    STALLED = "Stalled"
    """True when the trial failed; absent otherwise."""
    NETWORK_ENFORCED = "NetworkEnforced"
    """For tasks that restrict the network. True: the cluster enforces it. False: it does not, and spec.networkPolicy allows that."""
    TASK_WARNING = "TaskWarning"
    """True when the task has keys that nothing reads; the message names them."""


class Reason(StrEnum):
    """Reasons of conditions, events and the trial's phase. The docs list each; a test compares."""

    TASK_ACCEPTED = "TaskAccepted"
    TASK_INVALID = "TaskInvalid"
    TASK_UNAVAILABLE = "TaskUnavailable"
    TASK_CHANGED = "TaskChanged"
    UNKNOWN_KEYS = "UnknownKeys"
    PREPARING = "Preparing"
    PREPARED = "Prepared"
    PREPARE_FAILED = "PrepareFailed"
    STEP_STARTED = "StepStarted"
    AGENT_FINISHED = "AgentFinished"
    AGENT_FAILED = "AgentFailed"
    STEP_GRADED = "StepGraded"
    STEP_FAILED = "StepFailed"
    SUSPENDED = "Suspended"
    RESUMED = "Resumed"
    ALL_STEPS_RAN = "AllStepsRan"
    MIN_REWARD_NOT_MET = "MinRewardNotMet"
    POD_NOT_STARTED = "PodNotStarted"
    POD_START_FAILED = "PodStartFailed"
    POD_REJECTED = "PodRejected"
    WAITING_FOR_ADMISSION = "WaitingForAdmission"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    INFRASTRUCTURE_FAULT = "InfrastructureFault"
    RETRYING = "Retrying"
    VERIFIER_RETRYING = "VerifierRetrying"
    REGRADING = "Regrading"
    REGRADED = "Regraded"
    REGRADE_REFUSED = "RegradeRefused"
    NETWORK_ENFORCED = "NetworkEnforced"
    NETWORK_NOT_ENFORCED = "NetworkNotEnforced"
    SPEC_INVALID = "SpecInvalid"


def set_condition(
    status: MultiStepTrialStatus,
    kind: ConditionType,
    value: bool | None,
    reason: Reason,
    message: str,
    now: datetime,
) -> None:
    """Set a condition in place; None means Unknown. The transition time moves only when the value does."""
    word = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}[value]
    old = find(status, kind)
    new = Condition(
        type=kind.value,
        status=word,
        reason=reason.value,
        message=message,
        last_transition_time=old.last_transition_time if old is not None and old.status == word else now,
        observed_generation=status.observed_generation,
    )
    if old is None:
        status.conditions.append(new)
    else:
        status.conditions[status.conditions.index(old)] = new


def find(status: MultiStepTrialStatus, kind: ConditionType) -> Condition | None:
    """Return a condition, or None where it is not set."""
    return next((condition for condition in status.conditions if condition.type == kind.value), None)


def is_true(status: MultiStepTrialStatus, kind: ConditionType) -> bool:
    """Whether a condition is set and True."""
    condition = find(status, kind)
    return condition is not None and condition.status == ConditionStatus.TRUE
