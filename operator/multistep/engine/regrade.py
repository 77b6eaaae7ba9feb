"""Grading again after the trial's end: the verifier on the kept state, without the agent. The first result stays as it was."""

from __future__ import annotations

from multistep.api.spec import VerifierPlacement
from multistep.api.status import ErrorStatus, RegradeStatus, StepStatus
from multistep.engine.conditions import Reason
from multistep.engine.finish import step_score
from multistep.engine.outcomes import InfrastructureFault, VerifierOutcome, read_verifier
from multistep.engine.types import DeletePod, RegradeRequest, TaskReady, Trial
from multistep.engine.waiting import NotStarted, Waiting, pod_end
from multistep.engine.work import Pass, shorten
from multistep.pods.common import MAIN_CONTAINER
from multistep.pods.names import Role
from multistep.pods.phase import settings
from multistep.pods.verifier import verifier_deadline, verifier_pod
from multistep.scoring import RewardOverflowError, aggregate
from multistep.task import Task, VerifierEnvironmentMode

REGRADE_ERROR = "RegradeError"
TASK_IS_GONE = "the trial's task or volume is gone"


def regrade_wanted(trial: Trial) -> bool:
    """Whether a trial that ended has a verifier to run, or to wait for: only then is its task needed again."""
    return _running(trial.status.regrades) is not None or _new_request(trial) is not None


def regrade(work: Pass) -> None:
    """Bring a regrade forward; without one nothing happens."""
    state = work.observed.task
    running = _running(work.status.regrades)
    request = _new_request(work.trial)
    task = state.task if isinstance(state, TaskReady) else None
    if running is not None and task is not None:
        _after_pod(work, task, running)
    elif running is not None:
        _complete(work, running, ErrorStatus(type=REGRADE_ERROR, message=TASK_IS_GONE))
        work.actions.append(DeletePod(running.pod_name or ""))
    elif request is not None:
        _begin(work, task, request)


def _running(regrades: list[RegradeStatus]) -> RegradeStatus | None:
    return next((regrade for regrade in regrades if regrade.completion_time is None), None)


def _new_request(trial: Trial) -> RegradeRequest | None:
    request = trial.regrade
    return None if request is None or request.requested_at == trial.status.last_handled_regrade else request


def _begin(work: Pass, task: Task | None, request: RegradeRequest) -> None:
    status = work.status
    status.last_handled_regrade = request.requested_at
    step = _step(work, request)
    refusal = _refusal(work, task, step, request)
    entry = RegradeStatus(request=request.requested_at, step=request.step, start_time=work.now)
    status.regrades.append(entry)
    if refusal is not None or step is None or task is None:
        entry.error = ErrorStatus(type=REGRADE_ERROR, message=refusal or "the step is not known")
        entry.completion_time = work.now
        work.event("Warning", Reason.REGRADE_REFUSED, entry.error.message)
        return
    context = work.context(task)
    manifest = verifier_pod(context, step.index, role=Role.REGRADE, number=len(status.regrades))
    work.create_pod(task, manifest, settings(context, context.step(step.index)).network.verifier_phase)
    entry.step, entry.pod_name = step.name, manifest["metadata"]["name"]
    work.event("Normal", Reason.REGRADING, f"step {step.name} is graded again in pod {entry.pod_name}")


def _step(work: Pass, request: RegradeRequest) -> StepStatus | None:
    steps = work.status.steps
    if request.step is not None:
        return next((step for step in steps if step.name == request.step), None)
    return _last_attempted(work)


def _last_attempted(work: Pass) -> StepStatus | None:
    attempted = [step for step in work.status.steps if step.start_time is not None]
    return attempted[-1] if attempted else None


def _refusal(work: Pass, task: Task | None, step: StepStatus | None, request: RegradeRequest) -> str | None:
    """Say why a step cannot be graded again: a grade of another state than the step's own would look right and be wrong."""
    if task is None or work.status.workspace is None:
        return TASK_IS_GONE
    if step is None:
        return f"the trial has no step {request.step!r}" if request.step else "no step was attempted"
    if step.verifier_pod_name is None:
        return f"step {step.name} was never verified: there is no state to grade"
    context = work.context(task)
    if settings(context, context.step(step.index)).verifier_mode is VerifierEnvironmentMode.SEPARATE:
        return None
    if work.trial.spec.verifier.placement is VerifierPlacement.STEP_POD:
        return f"step {step.name} was verified in its step pod, whose processes are gone"
    last = _last_attempted(work)
    if last is not None and last.index != step.index:
        return (
            f"step {step.name} cannot be graded again: its verifier shares the agent's filesystem, which is that of step {last.name} "
            "by now; separate verifiers can, because each step's artifacts are kept"
        )
    return None


def _after_pod(work: Pass, task: Task, entry: RegradeStatus) -> None:
    step = next(step for step in work.status.steps if step.name == entry.step)
    name = entry.pod_name or ""
    end = pod_end(work, name, verifier_deadline(work.context(task), step.index))
    if isinstance(end, Waiting):
        return
    if isinstance(end, InfrastructureFault | NotStarted):
        _complete(work, entry, ErrorStatus(type="InfrastructureError", message=shorten(end.message), pod=name))
        work.actions.append(DeletePod(name))
        return
    outcome = read_verifier(end, MAIN_CONTAINER)
    if isinstance(outcome, InfrastructureFault):
        _complete(work, entry, ErrorStatus(type="InfrastructureError", message=shorten(outcome.message), pod=name))
    elif outcome.error is not None:
        _complete(work, entry, work.step_error(step, outcome.error.type, outcome.error.message, name))
    else:
        _keep(work, entry, step, outcome)


def _keep(work: Pass, entry: RegradeStatus, step: StepStatus, outcome: VerifierOutcome) -> None:
    entry.rewards = outcome.rewards
    attempted = [item for item in work.status.steps if item.start_time is not None]
    scores = [
        step_score(item.model_copy(update={"rewards": outcome.rewards, "error": None}) if item is step else item)
        for item in attempted
    ]
    strategy = work.status.task.reward_strategy if work.status.task is not None else "mean"
    try:
        entry.trial_rewards = aggregate("final" if strategy == "final" else "mean", scores)
    except RewardOverflowError as error:
        _complete(work, entry, ErrorStatus(type="RewardOverflowError", message=str(error), step=step.name))
        return
    _complete(work, entry, None)


def _complete(work: Pass, entry: RegradeStatus, error: ErrorStatus | None) -> None:
    entry.error, entry.completion_time = error, work.now
    if error is not None:
        work.event("Warning", Reason.REGRADED, f"step {entry.step} was graded again: {error.type}: {error.message}")
    else:
        first = next(step.rewards for step in work.status.steps if step.name == entry.step)
        work.event(
            "Normal", Reason.REGRADED, f"step {entry.step} was graded again: rewards {entry.rewards}, first {first}"
        )
