"""How a trial ends: its reward, how much it stands on, and its last conditions. Also the clean-up of a trial that ended."""

from __future__ import annotations

from multistep.api.status import EarlyStopStatus, ErrorStatus, Phase, StepPhase, StepStatus
from multistep.engine.conditions import ConditionType, Reason, set_condition
from multistep.engine.types import DeleteTrial
from multistep.engine.work import Pass
from multistep.scoring import EarlyStop, RewardOverflowError, Rewards, StepScore, aggregate, trial_reward_valid


def step_score(step: StepStatus) -> StepScore:
    """Return an attempted step as the scoring rules see it."""
    return StepScore(
        rewards=step.rewards,
        has_result=step.rewards is not None,
        error_type=step.error.type if step.error is not None else None,
    )


def succeed(work: Pass) -> None:
    """End the trial: every step ran."""
    total = len(work.status.steps)
    _complete(work, Phase.SUCCEEDED, Reason.ALL_STEPS_RAN, f"all {total} steps ran")


def stop_early(work: Pass, step: StepStatus, stop: EarlyStop) -> None:
    """End the trial: `min_reward` was not met. An answer, not a fault."""
    work.status.early_stop = EarlyStopStatus(
        step=step.name,
        message=stop.message,
        thresholds=dict(stop.thresholds),
        observed=dict(stop.observed),
        missing=list(stop.missing),
    )
    message = f"stopped after step {step.index} of {len(work.status.steps)} ({step.name}): {stop.message}"
    _complete(work, Phase.STOPPED, Reason.MIN_REWARD_NOT_MET, message)


def fail(work: Pass, reason: Reason, error: ErrorStatus) -> None:
    """End the trial without an answer. What was graded until then stays in status, marked as not valid."""
    status = work.status
    status.error = error
    work.delete_running_pods()
    current = work.current_step()
    if current is not None and current.phase in (StepPhase.RUNNING, StepPhase.VERIFYING):
        current.phase = StepPhase.FAILED
        current.error = current.error or error
        current.completion_time = work.now
    message = f"{error.type}: {error.message}"
    _end(work, Phase.FAILED, reason, message)
    set_condition(status, ConditionType.COMPLETE, False, reason, message, work.now)
    set_condition(status, ConditionType.FAILED, True, reason, message, work.now)
    set_condition(status, ConditionType.STALLED, True, reason, message, work.now)
    work.event("Warning", reason, message)


def clean_up(work: Pass) -> None:
    """Care for a trial that ended: nothing of it runs on, and it is deleted when its time to live is over."""
    work.delete_running_pods()
    ttl, ended_at = work.trial.spec.ttl_seconds_after_finished, work.status.completion_time
    if ttl is None or ended_at is None:
        return
    graded_at = [regrade.completion_time for regrade in work.status.regrades]
    if None not in graded_at and work.expired(max([ended_at, *filter(None, graded_at)]), ttl):
        work.actions.append(DeleteTrial())


def _complete(work: Pass, phase: Phase, reason: Reason, message: str) -> None:
    try:
        _end(work, phase, reason, message)
    except RewardOverflowError as error:
        fail(work, Reason.STEP_FAILED, ErrorStatus(type="RewardOverflowError", message=str(error)))
        return
    set_condition(work.status, ConditionType.COMPLETE, True, reason, message, work.now)
    work.event("Normal", reason, f"{message}; reward {work.status.reward or 'none'}")


def _end(work: Pass, phase: Phase, reason: Reason, message: str) -> None:
    status = work.status
    for step in status.steps:
        if step.phase is StepPhase.PENDING:
            step.phase = StepPhase.SKIPPED
    attempted = [step for step in status.steps if step.phase is not StepPhase.SKIPPED]
    scores = [step_score(step) for step in attempted]
    strategy = status.task.reward_strategy if status.task is not None else "mean"
    try:
        status.rewards = aggregate("final" if strategy == "final" else "mean", scores)
    except RewardOverflowError:
        if phase is not Phase.FAILED:
            raise
        status.rewards = None
    status.graded_steps = sum(step.rewards is not None for step in status.steps)
    status.total_steps = len(status.steps)
    status.reward_valid = phase is not Phase.FAILED and trial_reward_valid(status.rewards, scores)
    status.reward = _display(status.rewards) if status.reward_valid else None
    status.completion_time = work.now
    work.set_phase(phase, reason, message)
    set_condition(status, ConditionType.RECONCILING, False, reason, message, work.now)


def _display(rewards: Rewards | None) -> str | None:
    """Return the `reward`, or the first three keys where there is none of that name."""
    if not rewards:
        return None
    if "reward" in rewards:
        return _number(rewards["reward"])
    shown = [f"{key}={_number(value)}" for key, value in list(rewards.items())[:3]]
    return ",".join(shown) + (",..." if len(rewards) > 3 else "")


def _number(value: float) -> str:
    return f"{value:.4g}"
