"""How a trial starts: the task is looked at, then snapshot, volume and prepare pod are asked for."""

from __future__ import annotations

from pydantic import ValidationError

from multistep.api.spec import AgentName, ArtifactSpec, Persistence
from multistep.api.status import ErrorStatus, Phase, StepStatus, TaskStatus, WorkspaceStatus
from multistep.engine.conditions import ConditionType, Reason, set_condition
from multistep.engine.finish import fail
from multistep.engine.types import CreateObject, TaskInvalid, TaskReady, TaskUnavailable
from multistep.engine.work import Pass, shorten
from multistep.pods.claim import claim
from multistep.pods.context import artifact_config
from multistep.pods.environment import unresolved
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
        problems = (*unsupported(state.task), *trial_problems(work, state.task), *snapshot_problems(work, state))
        if problems:
            refuse(work, problems)
        else:
            _accept(work, state)


def trial_problems(work: Pass, task: Task) -> list[Problem]:
    """Return what makes this task impossible for this trial: no image, artifacts or variables that cannot be."""
    spec = work.trial.spec
    config = task.config
    problems = []
    if not (spec.environment.image or config.environment.docker_image):
        problems.append(
            Problem(
                "task.toml",
                "environment.docker_image",
                None,
                "the task names no image: build environment/Dockerfile, push it and name it here or in spec.environment.image of the trial",
            )
        )
    if spec.workspace.persistence is Persistence.WORKDIR and config.environment.workdir == "/":
        problems.append(
            Problem(
                "task.toml",
                "environment.workdir",
                "'/'",
                "persistence Workdir needs a working directory below /: name one, or use persistence Filesystem",
            )
        )
    problems += _artifact_problems(spec.artifacts)
    problems += unresolved("environment.env", config.environment.env, spec.env)
    if spec.agent.name is AgentName.ORACLE:
        problems += unresolved("solution.env", config.solution.env, spec.env)
    for step in [] if spec.verifier.disabled else task.steps:
        own = step.config.verifier.env
        inherited = {name: text for name, text in config.verifier.env.items() if name not in own}
        problems += unresolved(f"steps[{step.index - 1}].verifier.env", own, spec.env)
        problems += unresolved("verifier.env", inherited, spec.env)
    return list(dict.fromkeys(problems))


def _artifact_problems(artifacts: list[ArtifactSpec]) -> list[Problem]:
    """Return a problem for each artifact of the trial that the task format would refuse, too."""
    problems = []
    for number, artifact in enumerate(artifacts):
        try:
            artifact_config(artifact)
        except ValidationError as error:
            message = error.errors()[0]["msg"].removeprefix("Value error, ")
            problems.append(Problem(f"spec.artifacts[{number}]", None, repr(artifact.source), message))
    return problems


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
    work.actions.append(CreateObject(snapshot(work.trial.identity, task, state.bundle)))
    begin_attempt(work, task)
    work.event("Normal", Reason.TASK_ACCEPTED, f"the task has {len(task.steps)} steps; preparing the volume")
