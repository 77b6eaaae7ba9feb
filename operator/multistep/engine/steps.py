"""The walk through the steps: step pod, verifier pod, reward, and then the next step or the end."""

from __future__ import annotations

from multistep.api.status import ErrorStatus, Phase, StepPhase, StepSettings, StepStatus
from multistep.engine.conditions import Reason
from multistep.engine.faults import infrastructure_fault
from multistep.engine.finish import fail, step_score, stop_early, succeed
from multistep.engine.outcomes import InfrastructureFault, read_step, read_verifier
from multistep.engine.types import CreateObject
from multistep.engine.waiting import Awaited, finished_pod
from multistep.engine.work import Pass
from multistep.pods.names import Role
from multistep.pods.step import settings, step_deadline, step_pod, verifier_deadline, verifier_pod
from multistep.scoring import Continue, StopEarly, after_step, error_policy
from multistep.task import Task

AGENT_AT_WORK = "the agent is at work"
VERIFIER_AT_WORK = "the verifier is at work"


def advance(work: Pass, task: Task) -> None:
    """Take the trial as far as it goes with what was observed: a step's end and the next one's start are one pass."""
    while not work.ended:
        step = work.current_step()
        if step is None:
            succeed(work)
            return
        work.status.step = f"{step.index}/{len(work.status.steps)}"
        if not _advance_step(work, task, step):
            return


def _advance_step(work: Pass, task: Task, step: StepStatus) -> bool:
    """Advance one step by one phase; False when there is something to wait for."""
    match step.phase:
        case StepPhase.PENDING:
            return _start_step(work, task, step)
        case StepPhase.RUNNING:
            return _after_step_pod(work, task, step)
        case StepPhase.VERIFYING if step.verifier_pod_name is None:
            return _start_verifier(work, task, step)
        case _:
            return _after_verifier_pod(work, task, step)


def _start_step(work: Pass, task: Task, step: StepStatus) -> bool:
    if work.trial.spec.suspend:
        return False
    manifest = step_pod(work.context(task), step.index)
    work.actions.append(CreateObject(manifest))
    step.phase = StepPhase.RUNNING
    step.pod_name = manifest["metadata"]["name"]
    step.start_time = work.now
    step.settings = _settings(work, task, step)
    work.set_phase(Phase.RUNNING, Reason.STEP_STARTED, _message(work, step, AGENT_AT_WORK))
    work.event("Normal", Reason.STEP_STARTED, f"step {work.status.step} ({step.name}) started in pod {step.pod_name}")
    return False


def _after_step_pod(work: Pass, task: Task, step: StepStatus) -> bool:
    name = step.pod_name or ""
    deadline = step_deadline(work.context(task), step.index)
    awaited = Awaited(name, Role.STEP, step.index, deadline, Reason.STEP_STARTED, _message(work, step, AGENT_AT_WORK))
    pod = finished_pod(work, task, awaited)
    if pod is None:
        return False
    outcome = read_step(pod)
    if isinstance(outcome, InfrastructureFault):
        infrastructure_fault(work, task, f"pod {name}: {outcome.message}", name)
        return False
    step.stages = list(outcome.stages)
    if outcome.error is not None:
        step.error = work.step_error(step, outcome.error.type, outcome.error.message, name)
        if not graded_all_the_same(outcome.error.type):
            _fail_step(work, step, step.error)
            return False
        work.event("Warning", Reason.AGENT_FAILED, f"step {work.status.step} ({step.name}): {step.error.message}")
    if work.trial.spec.verifier.disabled:
        return _end_unverified(work, step)
    step.phase = StepPhase.VERIFYING
    return True


def _end_unverified(work: Pass, step: StepStatus) -> bool:
    """End a step that nobody verifies: an error still ends the trial, as in the reference."""
    if step.error is not None:
        _fail_step(work, step, step.error)
        return False
    step.phase = StepPhase.COMPLETED
    step.completion_time = work.now
    return True


def _settings(work: Pass, task: Task, step: StepStatus) -> StepSettings:
    """Return the settings that hold for a step, for the status."""
    context = work.context(task)
    found = settings(context, context.step(step.index))
    return StepSettings(
        agent_timeout_seconds=found.agent_timeout_sec,
        verifier_timeout_seconds=None if found.verification_disabled else found.verifier_timeout_sec,
        agent_user=None if found.agent_user is None else str(found.agent_user),
        verifier_user=None if found.verifier_user is None else str(found.verifier_user),
    )


def graded_all_the_same(error_type: str) -> bool:
    """Whether a step whose agent ended with this error is verified; setup and our own faults never are."""
    return error_policy(error_type).should_grade


def _start_verifier(work: Pass, task: Task, step: StepStatus) -> bool:
    if work.trial.spec.suspend:
        return False
    manifest = verifier_pod(work.context(task), step.index)
    work.actions.append(CreateObject(manifest))
    step.verifier_pod_name = manifest["metadata"]["name"]
    work.set_phase(Phase.RUNNING, Reason.AGENT_FINISHED, _message(work, step, VERIFIER_AT_WORK))
    return False


def _after_verifier_pod(work: Pass, task: Task, step: StepStatus) -> bool:
    name = step.verifier_pod_name or ""
    deadline = verifier_deadline(work.context(task), step.index)
    message = _message(work, step, VERIFIER_AT_WORK)
    awaited = Awaited(name, Role.VERIFIER, step.index, deadline, Reason.AGENT_FINISHED, message)
    pod = finished_pod(work, task, awaited)
    if pod is None:
        return False
    outcome = read_verifier(pod)
    if isinstance(outcome, InfrastructureFault):
        infrastructure_fault(work, task, f"pod {name}: {outcome.message}", name)
        return False
    step.stages += outcome.stages
    step.rewards = outcome.rewards
    if outcome.error is not None:
        error = work.step_error(step, outcome.error.type, outcome.error.message, name)
        # The agent's own error is kept where the verifier fails too, as in the reference.
        step.error = step.error or error
        _fail_step(work, step, error)
        return False
    step.phase = StepPhase.COMPLETED
    step.completion_time = work.now
    work.event("Normal", Reason.STEP_GRADED, f"step {work.status.step} ({step.name}): rewards {outcome.rewards}")
    return _decide_next(work, task, step)


def _decide_next(work: Pass, task: Task, step: StepStatus) -> bool:
    """Apply the stop rule, the one of `scoring.after_step`."""
    is_last = step.index == len(work.status.steps)
    verdict = after_step(step_score(step), task.steps[step.index - 1].config.min_reward, is_last)
    match verdict:
        case Continue():
            return True
        case StopEarly(stop):
            stop_early(work, step, stop)
        case _:
            error = step.error or work.step_error(step, "StepPodError", "the step has no result", step.pod_name)
            _fail_step(work, step, error)
    return False


def _fail_step(work: Pass, step: StepStatus, error: ErrorStatus) -> None:
    step.phase = StepPhase.FAILED
    step.completion_time = work.now
    fail(work, Reason.STEP_FAILED, error)


def _message(work: Pass, step: StepStatus, what: str) -> str:
    return f"step {work.status.step} ({step.name}): {what}"
