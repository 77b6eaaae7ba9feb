"""The walk through the steps: setup pod where one is needed, step pod, grading, and then the next step or the end."""

from __future__ import annotations

from multistep.api.status import ErrorStatus, Phase, StepPhase, StepSettings, StepStatus
from multistep.engine.conditions import Reason
from multistep.engine.faults import infrastructure_fault
from multistep.engine.finish import fail, step_score, stop_early, succeed
from multistep.engine.outcomes import InfrastructureFault, StepOutcome, read_step, read_verifier
from multistep.engine.verifying import Graded, after_verifier_pod, record_verification, start_verifier
from multistep.engine.waiting import Awaited, finished_pod
from multistep.engine.work import Pass
from multistep.pods.outcome import ObservedPod
from multistep.pods.phase import settings
from multistep.pods.step import needs_setup_pod, setup_deadline, setup_pod, step_deadline, step_pod
from multistep.pods.verifier import VERIFIER_CONTAINER, verifies_in_step_pod
from multistep.scoring import Continue, StopEarly, after_step, error_policy
from multistep.task import Task

AGENT_AT_WORK = "the agent is at work"
SETUP_AT_WORK = "the step is being set up"


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
        case StepPhase.RUNNING if step.setup_pod_name is not None and step.pod_name is None:
            return _after_setup_pod(work, task, step)
        case StepPhase.RUNNING:
            return _after_step_pod(work, task, step)
        case StepPhase.VERIFYING if step.verifier_pod_name is None:
            return start_verifier(work, task, step)
        case _:
            graded = after_verifier_pod(work, task, step)
            return graded is not None and _after_grading(work, task, step, graded)


def _start_step(work: Pass, task: Task, step: StepStatus) -> bool:
    if work.trial.spec.suspend:
        return False
    context = work.context(task)
    step.phase = StepPhase.RUNNING
    step.start_time = work.now
    step.settings = _settings(work, task, step)
    if needs_setup_pod(context, step.index):
        manifest = setup_pod(context, step.index)
        work.create_pod(task, manifest, settings(context, context.step(step.index)).network.agent_environment)
        step.setup_pod_name = started = manifest["metadata"]["name"]
        work.set_phase(Phase.RUNNING, Reason.STEP_STARTED, work.step_message(step, SETUP_AT_WORK))
    else:
        started = _create_step_pod(work, task, step)
    work.event("Normal", Reason.STEP_STARTED, f"step {work.status.step} ({step.name}) started in pod {started}")
    return False


def _create_step_pod(work: Pass, task: Task, step: StepStatus) -> str:
    context = work.context(task)
    manifest = step_pod(context, step.index)
    work.create_pod(task, manifest, settings(context, context.step(step.index)).network.agent_phase)
    name: str = manifest["metadata"]["name"]
    step.pod_name = name
    work.set_phase(Phase.RUNNING, Reason.STEP_STARTED, work.step_message(step, AGENT_AT_WORK))
    return name


def _after_setup_pod(work: Pass, task: Task, step: StepStatus) -> bool:
    name = step.setup_pod_name or ""
    deadline = setup_deadline(work.context(task), step.index)
    outcome = _step_outcome(
        work, task, Awaited(name, deadline, Reason.STEP_STARTED, work.step_message(step, SETUP_AT_WORK))
    )
    if outcome is None:
        return False
    step.stages = list(outcome[1].stages)
    error = outcome[1].error
    if error is not None:
        step.error = work.step_error(step, error.type, error.message, name)
        _fail_step(work, step, step.error)
    elif not work.trial.spec.suspend:
        _create_step_pod(work, task, step)
    return False


def _after_step_pod(work: Pass, task: Task, step: StepStatus) -> bool:
    name, context = step.pod_name or "", work.context(task)
    deadline = step_deadline(context, step.index)
    found = _step_outcome(
        work, task, Awaited(name, deadline, Reason.STEP_STARTED, work.step_message(step, AGENT_AT_WORK))
    )
    if found is None:
        return False
    pod, outcome = found
    step.stages += outcome.stages
    if outcome.error is not None:
        step.error = work.step_error(step, outcome.error.type, outcome.error.message, name)
        if not graded_all_the_same(outcome.error.type):
            _fail_step(work, step, step.error)
            return False
        work.event("Warning", Reason.AGENT_FAILED, f"step {work.status.step} ({step.name}): {step.error.message}")
    if work.trial.spec.verifier.disabled:
        return _end_unverified(work, step)
    step.phase = StepPhase.VERIFYING
    if not verifies_in_step_pod(context, context.step(step.index)):
        return True
    step.verifier_pod_name = name
    verification = read_verifier(pod, VERIFIER_CONTAINER)
    if isinstance(verification, InfrastructureFault):
        infrastructure_fault(work, task, f"pod {name}: {verification.message}", name)
        return False
    return _after_grading(work, task, step, record_verification(work, step, verification))


def _step_outcome(work: Pass, task: Task, awaited: Awaited) -> tuple[ObservedPod, StepOutcome] | None:
    """Return a setup or step pod that is over and what it says; None while there is something to wait for, or after a fault."""
    end = finished_pod(work, awaited)
    if end is None:
        return None
    if isinstance(end, InfrastructureFault):
        infrastructure_fault(work, task, end.message, awaited.name)
        return None
    outcome = read_step(end)
    if isinstance(outcome, InfrastructureFault):
        infrastructure_fault(work, task, f"pod {awaited.name}: {outcome.message}", awaited.name)
        return None
    return end, outcome


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


def _after_grading(work: Pass, task: Task, step: StepStatus, graded: Graded) -> bool:
    """Go on after a step's verification: its error ends the trial, its rewards decide."""
    if graded.error is not None:
        # The agent's own error is kept where the verifier fails too, as in the reference.
        step.error = step.error or graded.error
        _fail_step(work, step, graded.error)
        return False
    step.phase = StepPhase.COMPLETED
    step.completion_time = work.now
    work.event("Normal", Reason.STEP_GRADED, f"step {work.status.step} ({step.name}): rewards {step.rewards}")
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
