"""What a finished pod means: from containers and reports to rewards and typed errors. Pure, and the only reader of reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from multistep.api.status import ContainerUser, StageStatus
from multistep.pods.common import MAIN_CONTAINER
from multistep.pods.outcome import ContainerOutcome, ObservedPod
from multistep.pods.prepare import PROBE_CONTAINER, SEED_CONTAINER
from multistep.pods.reports import (
    Fault,
    HandedReward,
    ProbeReport,
    ReportError,
    SeedReport,
    Stage,
    StepReport,
    VerifierReport,
    parse_report,
)
from multistep.scoring import RewardError, RewardFile, Rewards, VerifierOutputParseError, parse_rewards

TERMINATED = "TerminatedError"
"""What the runner reports when it was told to end: pod deletion, node shutdown."""

_NOT_THE_AGENT = {
    TERMINATED: "the pod was told to end before the step was done (deleted, or its node shut down)",
    # The runner's marker on the volume: the agent of this attempt ran in a pod that is gone, and must not run twice.
    "StepAlreadyStartedError": "the step had been started in a pod that is gone; its agent is not run a second time",
}


@dataclass(frozen=True)
class StepError:
    """A typed error and its sentence."""

    type: str
    message: str


@dataclass(frozen=True)
class InfrastructureFault:
    """The pod's end says nothing of the agent: the node, the scheduler or a person ended it."""

    message: str


@dataclass(frozen=True)
class StepOutcome:
    """What a step pod reported."""

    stages: tuple[StageStatus, ...]
    error: StepError | None


@dataclass(frozen=True)
class VerifierOutcome:
    """What a verifier pod reported: rewards or an error."""

    stages: tuple[StageStatus, ...]
    rewards: Rewards | None
    error: StepError | None


@dataclass(frozen=True)
class Prepared:
    """What the prepare pod found."""

    workdir: str
    directories: tuple[str, ...]
    user: ContainerUser


def read_prepare(pod: ObservedPod) -> Prepared | StepError | InfrastructureFault:
    """Read a prepare pod that is over."""
    if pod.infrastructure_fault is not None:
        return InfrastructureFault(pod.infrastructure_fault)
    if pod.reason == "DeadlineExceeded":
        return StepError(
            "PrepareError", "the prepare pod did not end in time: is the volume slow, or the image very large?"
        )
    for container in (*pod.init_containers, *pod.containers):
        if container.terminated and container.exit_code != 0:
            return _prepare_error(container)
    try:
        probe = parse_report(ProbeReport, _message(pod, PROBE_CONTAINER))
        seed = parse_report(SeedReport, _message(pod, SEED_CONTAINER))
    except ReportError as error:
        return StepError("PrepareError", f"the prepare pod: {error}")
    if seed.error is not None or seed.workdir is None:
        return StepError(
            "PrepareError", seed.error.output if seed.error else "the prepare pod found no working directory"
        )
    return Prepared(seed.workdir, tuple(seed.directories), probe.user)


def _prepare_error(container: ContainerOutcome) -> StepError:
    if container.name == SEED_CONTAINER:
        try:
            fault = parse_report(SeedReport, container.message).error
            if fault is not None:
                return StepError("PrepareError", f"copying the image to the volume failed: {fault.output}")
        except ReportError:
            pass
    what = (container.message or container.reason or "no further word").strip()
    return StepError(
        "PrepareError",
        f"container {container.name} (image {container.image}) ended with exit code {container.exit_code}: {what}",
    )


def read_step(pod: ObservedPod) -> StepOutcome | InfrastructureFault:
    """Read a step pod that is over."""
    if pod.infrastructure_fault is not None:
        return InfrastructureFault(pod.infrastructure_fault)
    main = pod.container(MAIN_CONTAINER)
    try:
        report = parse_report(StepReport, main.message if main else None)
    except ReportError as error:
        report, unread = None, error
    stages = _stages(report.stages) if report else ()
    # In a step pod that is graded in place it may have been the tests that took too long.
    if pod.reason == "DeadlineExceeded" and (report is None or len(pod.containers) == 1):
        return StepOutcome(
            stages,
            StepError("AgentTimeoutError", "the step's container ignored its timeouts; Kubernetes ended the pod"),
        )
    if main is not None and main.reason == "OOMKilled":
        return StepOutcome(
            stages,
            StepError(
                "AgentOutOfMemoryError",
                "the step's container ran out of memory: raise environment.memory_mb in task.toml",
            ),
        )
    if report is None:
        return StepOutcome((), StepError("StepPodError", _no_report(main, unread)))
    if report.error is not None and report.error.type in _NOT_THE_AGENT:
        return InfrastructureFault(_NOT_THE_AGENT[report.error.type])
    return StepOutcome(stages, _step_error(report.error) if report.error else None)


def _no_report(main: ContainerOutcome | None, error: ReportError) -> str:
    if main is None or not main.terminated:
        return f"the pod ended without its container having run: {error}"
    reason = f" ({main.reason}: {main.message})" if main.reason not in (None, "Error", "Completed") else ""
    return f"container {main.name} (image {main.image}) ended with exit code {main.exit_code}{reason}; {error}"


_STEP_MESSAGES = {
    "SetupError": "setup.sh failed",
    "HealthcheckError": "the healthcheck did not succeed",
    "AgentTimeoutError": "the agent did not end within its timeout and was ended",
    "NonZeroAgentExitCodeError": "the agent ended with an error",
    "SolutionNotFoundError": "the oracle found no solution/solve.sh for this step",
    "UserNotFoundError": "the user that the task names does not exist in the image",
    "VerifierTimeoutError": "the tests did not end within the verifier's timeout and were ended; a reward already written does not count",
}


def _step_error(fault: Fault) -> StepError:
    message = _STEP_MESSAGES.get(fault.type, f"stage {fault.stage or 'unknown'} failed")
    if fault.exit_code is not None:
        message += f" (exit code {fault.exit_code})"
    if fault.crlf:
        message += "; the script has Windows line ends (CRLF): convert it to LF"
    if fault.output:
        message += f"; its last output: {fault.output}"
    return StepError(fault.type, message)


def read_verifier(pod: ObservedPod, container: str) -> VerifierOutcome | InfrastructureFault:
    """Read the verifier's container of a pod that is over. Rewards come from here and from nowhere else."""
    if pod.infrastructure_fault is not None:
        return InfrastructureFault(pod.infrastructure_fault)
    main = pod.container(container)
    if pod.reason == "DeadlineExceeded":
        return _no_rewards(
            (), "VerifierTimeoutError", "the verifier's container ignored its timeout; Kubernetes ended the pod"
        )
    try:
        report = parse_report(VerifierReport, main.message if main else None)
    except ReportError as error:
        if main is not None and main.reason == "OOMKilled":
            return _no_rewards((), "VerifierOutOfMemoryError", "the verifier's container ran out of memory")
        return _no_rewards((), "VerifierPodError", _no_report(main, error))
    stages = _stages(report.stages)
    if report.error is not None:
        if report.error.type == TERMINATED:
            return InfrastructureFault("the verifier pod was told to end before it was done")
        return VerifierOutcome(stages, None, _step_error(report.error))
    try:
        return VerifierOutcome(stages, parse_rewards(_reward_file(report.reward, pod.reward_from_log)), None)
    except ReportError as error:
        return InfrastructureFault(str(error))
    except RewardError as error:
        message = str(error)
        if report.crlf:
            message += "; tests/test.sh has Windows line ends (CRLF), which may be why: convert it to LF"
        return _no_rewards(stages, error.error_type, message)


def _reward_file(handed: HandedReward | None, from_log: bytes | None) -> RewardFile | None:
    if handed is None:
        return None
    if handed.kind == "tooLarge":
        raise VerifierOutputParseError(f"{handed.name} has {handed.size} bytes; a reward may have 1 MiB at most")
    if handed.kind != "file":
        return RewardFile(handed.name, "directory", b"")
    content = from_log if handed.in_log else handed.content
    if content is None:
        raise ReportError(f"{handed.name} ({handed.size} bytes) could not be read whole from the verifier pod's log")
    return RewardFile(handed.name, "file", content)


def _no_rewards(stages: tuple[StageStatus, ...], error_type: str, message: str) -> VerifierOutcome:
    return VerifierOutcome(stages, None, StepError(error_type, message))


def _stages(stages: Sequence[Stage]) -> tuple[StageStatus, ...]:
    return tuple(
        StageStatus(
            name=stage.name[:40],
            start_time=stage.started_at,
            duration_seconds=max(0, round((stage.finished_at - stage.started_at).total_seconds())),
            exit_code=stage.exit_code or None,
        )
        for stage in stages
    )


def _message(pod: ObservedPod, container: str) -> str | None:
    found = pod.container(container)
    return found.message if found else None
