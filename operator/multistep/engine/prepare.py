"""The prepare phase: wait for the prepare pod, and keep what it found."""

from __future__ import annotations

from multistep.api.spec import Persistence
from multistep.api.status import ErrorStatus, Phase
from multistep.engine.conditions import Reason
from multistep.engine.faults import infrastructure_fault, remove_attempt
from multistep.engine.finish import fail
from multistep.engine.outcomes import InfrastructureFault, Prepared, StepError, read_prepare
from multistep.engine.start import VOLUME_IS_FILLED
from multistep.engine.waiting import Awaited, finished_pod
from multistep.engine.work import Pass
from multistep.pods.prepare import prepare_deadline
from multistep.task import Task


def prepare(work: Pass, task: Task) -> bool:
    """Go on with the prepare phase; True once the steps can begin."""
    workspace = work.workspace
    if workspace.workdir is not None:
        return True
    if work.status.attempt > 1:
        # Again in every pass of this phase: the operator may have been killed before it had removed all.
        remove_attempt(work, work.status.attempt - 1)
    name = workspace.prepare_pod_name or ""
    deadline = prepare_deadline(work.trial.spec)
    end = finished_pod(work, Awaited(name, deadline, Reason.PREPARING, VOLUME_IS_FILLED))
    if end is None:
        return False
    result = end if isinstance(end, InfrastructureFault) else read_prepare(end)
    match result:
        case InfrastructureFault(message):
            infrastructure_fault(work, task, message, name)
        case StepError(error_type, message):
            fail(work, Reason.PREPARE_FAILED, ErrorStatus(type=error_type, message=message, pod=name))
        case Prepared() if work.trial.spec.workspace.persistence is Persistence.WORKDIR and result.workdir == "/":
            message = (
                "persistence Workdir needs a working directory below /, and the image's is /: set environment.workdir"
            )
            fail(work, Reason.PREPARE_FAILED, ErrorStatus(type="PrepareError", message=message, pod=name))
        case Prepared(workdir, directories, user):
            workspace.workdir, workspace.directories, workspace.user = workdir, list(directories), user
            work.set_phase(Phase.RUNNING, Reason.PREPARED, "the volume is ready")
            work.event("Normal", Reason.PREPARED, f"the volume is ready; working directory {workdir}")
            return True
    return False
