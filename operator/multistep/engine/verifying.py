"""A step's verification: the verifier pod, what it found, and another try where the tests had no chance to say anything."""

from __future__ import annotations

from dataclasses import dataclass

from multistep.api.status import ErrorStatus, Phase, StepStatus, VerificationStatus
from multistep.engine.conditions import Reason
from multistep.engine.faults import infrastructure_fault
from multistep.engine.outcomes import InfrastructureFault, VerifierOutcome, read_verifier
from multistep.engine.waiting import Awaited, finished_pod
from multistep.engine.work import Pass
from multistep.pods.common import MAIN_CONTAINER
from multistep.pods.names import Role
from multistep.pods.phase import settings
from multistep.pods.verifier import verifier_deadline, verifier_pod
from multistep.task import Task

VERIFIER_AT_WORK = "the verifier is at work"
VERIFIER_TIMEOUT = "VerifierTimeoutError"


@dataclass(frozen=True)
class Graded:
    """The end of a verification; the step has its rewards, or there is an error."""

    error: ErrorStatus | None


def start_verifier(work: Pass, task: Task, step: StepStatus) -> bool:
    """Ask for a step's verifier pod; always False, because there is something to wait for then."""
    if work.trial.spec.suspend or not _earlier_try_is_over(work, task, step):
        return False
    context = work.context(task)
    manifest = verifier_pod(context, step.index, number=len(step.previous_verifications) + 1)
    work.create_pod(task, manifest, settings(context, context.step(step.index)).network.verifier_phase)
    step.verifier_pod_name = manifest["metadata"]["name"]
    work.set_phase(Phase.RUNNING, Reason.AGENT_FINISHED, work.step_message(step, VERIFIER_AT_WORK))
    return False


def after_verifier_pod(work: Pass, task: Task, step: StepStatus) -> Graded | None:
    """Read a step's verifier pod; None while there is something to wait for: the pod, another try, or nothing because the trial ended."""
    name = step.verifier_pod_name or ""
    deadline = verifier_deadline(work.context(task), step.index)
    message = work.step_message(step, VERIFIER_AT_WORK)
    end = finished_pod(work, Awaited(name, deadline, Reason.AGENT_FINISHED, message))
    if end is None:
        return None
    outcome = end if isinstance(end, InfrastructureFault) else read_verifier(end, MAIN_CONTAINER)
    if isinstance(outcome, InfrastructureFault):
        text = outcome.message if outcome is end else f"pod {name}: {outcome.message}"
        if _try_again(work, step, work.step_error(step, "InfrastructureError", text, name)):
            return None
        infrastructure_fault(work, task, text, name)
        return None
    if outcome.error is not None and outcome.error.type == VERIFIER_TIMEOUT:
        error = work.step_error(step, outcome.error.type, outcome.error.message, name)
        if _try_again(work, step, error):
            return None
    return record_verification(work, step, outcome)


def record_verification(work: Pass, step: StepStatus, outcome: VerifierOutcome) -> Graded:
    """Keep what a verifier found in the step's status."""
    step.stages += outcome.stages
    step.rewards = outcome.rewards
    if outcome.error is None:
        return Graded(None)
    return Graded(work.step_error(step, outcome.error.type, outcome.error.message, step.verifier_pod_name))


def _try_again(work: Pass, step: StepStatus, error: ErrorStatus) -> bool:
    """Let the verifier run again, if `spec.verifier.retries` has a try left. The agent does not run again."""
    tries = len(step.previous_verifications) + 1
    if tries > work.trial.spec.verifier.retries:
        return False
    name = step.verifier_pod_name
    step.previous_verifications.append(VerificationStatus(pod_name=name, completion_time=work.now, error=error))
    step.verifier_pod_name = None
    work.delete_running_pods()
    again = f"the verifier runs again ({tries} of {work.trial.spec.verifier.retries})"
    text = work.step_message(step, f"{error.message}; {again}")
    work.event("Warning", Reason.VERIFIER_RETRYING, text)
    work.set_phase(Phase.RUNNING, Reason.VERIFIER_RETRYING, text)
    work.wake_in(1)
    return True


def _earlier_try_is_over(work: Pass, task: Task, step: StepStatus) -> bool:
    """Whether nothing of an earlier try runs any more: two verifiers at once would spoil each other's filesystem."""
    running = [pod for pod in work.observed.pods if pod.role is Role.VERIFIER and not pod.over]
    if not running or not step.previous_verifications:
        return True
    since = step.previous_verifications[-1].completion_time or work.now
    if work.expired(since, work.trial.spec.start_deadline_seconds):
        text = f"pod {running[0].name} does not end: node {running[0].node_name} does not answer"
        infrastructure_fault(work, task, text, running[0].name)
    return False
