"""How a trial starts: the task is looked at, then snapshot, volume and prepare pod are asked for."""

from __future__ import annotations

from multistep.api.status import ErrorStatus, Phase, StepStatus, TaskStatus, WorkspaceStatus
from multistep.engine.conditions import ConditionType, Reason, set_condition
from multistep.engine.finish import fail
from multistep.engine.trial_problems import restricted, trial_problems
from multistep.engine.types import CreateObject, TaskInvalid, TaskReady, TaskUnavailable
from multistep.engine.work import Pass, shorten
from multistep.pods.claim import claim
from multistep.pods.context import TrialContext
from multistep.pods.names import Role, claim_name, pod_name
from multistep.pods.prepare import prepare_pod
from multistep.pods.snapshot import MAXIMUM_BYTES, snapshot
from multistep.task import Problem, Task, unsupported

VOLUME_IS_FILLED = "the volume is being filled with the task and the image's files"


def start(work: Pass) -> None:
    """Begin the trial, or end it where the task cannot run. Called until the trial has a volume."""
    status = work.status
    if status.start_time is None:
        status.start_time = work.now
        set_condition(status, ConditionType.RECONCILING, True, Reason.PREPARING, "the trial is on its way", work.now)
    state = work.observed.task
    if isinstance(state, TaskUnavailable):
        _wait_for_task(work, state.message)
    elif isinstance(state, TaskInvalid):
        refuse(work, state.problems)
    else:
        problems = (
            *unsupported(state.task),
            *trial_problems(_context(work, state.task)),
            *snapshot_problems(work, state),
        )
        if problems:
            refuse(work, problems)
        else:
            _accept(work, state)


def _context(work: Pass, task: Task) -> TrialContext:
    """Return the context of a trial that has no volume yet, for looking at its settings."""
    return TrialContext(
        identity=work.trial.identity,
        spec=work.trial.spec,
        task=task,
        workspace=WorkspaceStatus(claim_name=claim_name(work.trial.identity, work.status.attempt)),
        attempt=work.status.attempt,
        operator_image=work.settings.operator_image,
        network_engine=work.settings.network_engine,
    )


def snapshot_problems(work: Pass, state: TaskReady) -> list[Problem]:
    """Return a problem where the task is too large for its snapshot, a ConfigMap of at most 1 MiB."""
    size = len(state.task.model_dump_json(exclude_defaults=True).encode()) + len(state.bundle or b"") * 4 // 3
    if size <= MAXIMUM_BYTES:
        return []
    return [
        Problem(
            "spec.task.inline" if state.bundle is not None else "task.toml",
            None,
            f"{size} bytes",
            f"the task does not fit into a ConfigMap ({MAXIMUM_BYTES} bytes): use `multistep pack`, which splits it over several",
        )
    ]


def refuse(work: Pass, problems: tuple[Problem, ...]) -> None:
    """End the trial: the task cannot run. All problems are named, not the first only."""
    text = "; ".join(str(problem) for problem in problems)
    if len(problems) > 1:
        text = f"{len(problems)} problems: {text}"
    set_condition(work.status, ConditionType.TASK_VALID, False, Reason.TASK_INVALID, shorten(text, 16_000), work.now)
    fail(work, Reason.TASK_INVALID, ErrorStatus(type="TaskInvalidError", message=shorten(text)))


def begin_attempt(work: Pass, task: Task) -> None:
    """Ask for the volume and the prepare pod of the current attempt."""
    identity, status = work.trial.identity, work.status
    status.workspace = WorkspaceStatus(
        claim_name=claim_name(identity, status.attempt),
        prepare_pod_name=pod_name(identity, status.attempt, Role.PREPARE),
        start_time=work.now,
    )
    status.steps = [StepStatus(index=step.index, name=step.name) for step in task.steps]
    status.step = f"0/{len(task.steps)}"
    work.actions.append(CreateObject(claim(identity, status.attempt, work.trial.spec.workspace)))
    work.actions.append(CreateObject(prepare_pod(work.context(task))))
    work.set_phase(Phase.PREPARING, Reason.PREPARING, VOLUME_IS_FILLED)


def _wait_for_task(work: Pass, message: str) -> None:
    assert work.status.start_time is not None
    set_condition(work.status, ConditionType.TASK_VALID, None, Reason.TASK_UNAVAILABLE, message, work.now)
    work.set_phase(Phase.PENDING, Reason.TASK_UNAVAILABLE, message)
    if work.expired(work.status.start_time, work.trial.spec.start_deadline_seconds):
        fail(work, Reason.TASK_UNAVAILABLE, ErrorStatus(type="TaskUnavailableError", message=shorten(message)))
    else:
        work.wake_in(5)


def _accept(work: Pass, state: TaskReady) -> None:
    status, task = work.status, state.task
    status.task = TaskStatus(
        digest=task.digest,
        name=task.name,
        reward_strategy=task.config.multi_step_reward_strategy or "mean",
    )
    status.total_steps = len(task.steps)
    set_condition(status, ConditionType.TASK_VALID, True, Reason.TASK_ACCEPTED, f"{len(task.steps)} steps", work.now)
    if state.warnings:
        text = "; ".join(str(warning) for warning in state.warnings)
        set_condition(status, ConditionType.TASK_WARNING, True, Reason.UNKNOWN_KEYS, shorten(text, 16_000), work.now)
        work.event("Warning", Reason.UNKNOWN_KEYS, text)
    _tell_enforcement(work, task)
    work.actions.append(CreateObject(snapshot(work.trial.identity, task, state.bundle)))
    begin_attempt(work, task)
    work.event("Normal", Reason.TASK_ACCEPTED, f"the task has {len(task.steps)} steps; preparing the volume")


def _tell_enforcement(work: Pass, task: Task) -> None:
    """Say whether the task's restrictions of the network hold; nothing where it has none."""
    restrictions = restricted(_context(work, task))
    if not restrictions:
        return
    gaps = list(dict.fromkeys(gap for _, gap in restrictions if gap is not None))
    if not gaps:
        text = "the cluster's network policies enforce what the task allows"
        set_condition(work.status, ConditionType.NETWORK_ENFORCED, True, Reason.NETWORK_ENFORCED, text, work.now)
        return
    text = shorten("; ".join(gaps), 16_000)
    set_condition(work.status, ConditionType.NETWORK_ENFORCED, False, Reason.NETWORK_NOT_ENFORCED, text, work.now)
    work.event("Warning", Reason.NETWORK_NOT_ENFORCED, text)
