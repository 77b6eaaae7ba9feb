"""Where a step is graded: a pod of its own, in the agent's filesystem or in a separate environment, or a container of the step pod."""

from __future__ import annotations

from multistep.api.spec import VerifierPlacement
from multistep.pods import environment, layout
from multistep.pods.accelerators import accelerators
from multistep.pods.collection import place_arguments
from multistep.pods.common import MAIN_CONTAINER, Manifest, container, pod, resources
from multistep.pods.context import TrialContext
from multistep.pods.environment import literal
from multistep.pods.names import Role
from multistep.pods.phase import (
    KILL_GRACE_SECONDS,
    SLACK_SECONDS,
    environment_files_mounts,
    filesystem_mounts,
    log_mounts,
    seconds,
    settings,
    user,
)
from multistep.task import EffectiveStep, Step, VerifierEnvironment, VerifierEnvironmentMode

VERIFIER_CONTAINER = "verifier"
"""Name of the verifier's container in a step pod."""

PROBE_CONTAINER = "probe"


def verifies_in_step_pod(context: TrialContext, step: Step) -> bool:
    """Whether a step's verifier is a container of the step pod."""
    return (
        context.spec.verifier.placement is VerifierPlacement.STEP_POD
        and not context.spec.verifier.disabled
        and settings(context, step).verifier_mode is VerifierEnvironmentMode.SHARED
    )


def side_verifier(context: TrialContext, step: Step) -> Manifest:
    """Return the verifier as a second container of the step pod: it waits for the agent's end, and servers left running answer it."""
    main = _shared_container(context, VERIFIER_CONTAINER, step, Role.VERIFIER, step_results(step), 1)
    main["args"].append("--after-agent=yes")
    main["volumeMounts"].append(layout.TURN_VOLUME_MOUNT)
    return main


def verifier_pod(context: TrialContext, index: int, *, role: Role = Role.VERIFIER, number: int = 1) -> Manifest:
    """Return a verifier pod of a step.

    Args:
        context: the trial's.
        index: the step's, counted from 1.
        role: VERIFIER, or REGRADE for one that somebody asked for after the trial's end; its results lie beside the first ones.
        number: which of this role it is for this step, counted from 1.
    """
    step = context.step(index)
    effective = settings(context, step)
    results = step_results(step) if role is Role.VERIFIER else layout.step_results(step.name, f"regrades/{number}")
    init_containers: list[Manifest] = []
    volumes: list[Manifest] = []
    own = effective.verifier_environment
    if own is None:
        main = _shared_container(context, MAIN_CONTAINER, step, role, results, number)
    else:
        main = _separate_container(context, step, effective, own, role, results, number)
        if _needs_probe(context, effective, own):
            init_containers.append(_probe_container(context, main["image"]))
            main["volumeMounts"].append(layout.PROBE_VOLUME_MOUNT)
            volumes.append(layout.PROBE_VOLUME)
    return pod(
        context,
        role,
        [main],
        step_index=index,
        number=number,
        init_containers=init_containers,
        volumes=volumes,
        deadline_seconds=verifier_deadline(context, index),
        network=effective.network.verifier_phase,
        accelerators=accelerators(context, own.resources if own else effective.resources),
    )


def verifier_deadline(context: TrialContext, index: int) -> float:
    """Return the seconds that a verifier pod may live at most."""
    return context.spec.start_deadline_seconds + verifying_seconds(context, context.step(index)) + SLACK_SECONDS


def verifying_seconds(context: TrialContext, step: Step) -> float:
    """Return the seconds that a step's tests may take at most."""
    return max(0.0, settings(context, step).verifier_timeout_sec) + KILL_GRACE_SECONDS


def step_results(step: Step) -> str:
    """Return the path on the volume where a step's verifier leaves its results."""
    return layout.step_results(step.name, "verifier")


def _shared_container(context: TrialContext, name: str, step: Step, role: Role, results: str, number: int) -> Manifest:
    effective = settings(context, step)
    mounts = [
        *filesystem_mounts(context),
        *log_mounts(step),
        *_verifier_mounts(step, role, results, number),
        *_tests_mounts(context, step),
    ]
    arguments = [
        *_arguments(step, effective),
        literal(f"--workdir={context.workspace.workdir}"),
        literal(f"--user={user(context, effective.verifier_user)}"),
    ]
    main = container(context, name, arguments, mounts)
    main["env"] = _environment(context, context.task.config.environment.env, effective)
    # In a step pod the agent's container has the accelerators: one device cannot be given to two containers.
    in_step_pod = name == VERIFIER_CONTAINER
    main["resources"] = resources(
        effective.resources, None if in_step_pod else accelerators(context, effective.resources)
    )
    return main


def _separate_container(
    context: TrialContext,
    step: Step,
    effective: EffectiveStep,
    own: VerifierEnvironment,
    role: Role,
    results: str,
    number: int,
) -> Manifest:
    """Return the container of a separate verifier: of the agent's environment it has the artifacts, and nothing else."""
    artifacts = layout.step_results(step.name, "artifacts")
    mounts = [
        layout.mount(layout.ARTIFACTS_MOUNT, artifacts, read_only=True),
        *_verifier_mounts(step, role, results, number),
    ]
    named = "" if effective.verifier_user is None else str(effective.verifier_user)
    if not named and not _needs_probe(context, effective, own):
        named = user(context, None)
    arguments = [
        *_arguments(step, effective),
        literal(f"--workdir={own.workdir or ''}"),
        literal(f"--user={named}"),
        *place_arguments(effective.artifacts),
    ]
    if own.tests_bundled:
        arguments.append("--tests=bundled")
    else:
        mounts += [*_tests_mounts(context, step), *environment_files_mounts(context)]
    main = container(context, MAIN_CONTAINER, arguments, mounts)
    main["image"] = context.verifier_image(own)
    main["env"] = _environment(context, own.env, effective)
    main["resources"] = resources(own.resources, accelerators(context, own.resources))
    return main


def _needs_probe(context: TrialContext, effective: EffectiveStep, own: VerifierEnvironment) -> bool:
    """Whether the image's own user has to be found out: nobody is named, and the image is not the agent's, whose user is known."""
    return effective.verifier_user in (None, "") and context.verifier_image(own) != context.image


def _probe_container(context: TrialContext, image: str) -> Manifest:
    probe = container(context, PROBE_CONTAINER, ["probe"], [layout.PROBE_VOLUME_MOUNT])
    probe["image"] = image
    for key in ("runAsUser", "runAsGroup", "runAsNonRoot"):
        del probe["securityContext"][key]
    return probe


def _arguments(step: Step, effective: EffectiveStep) -> list[str]:
    return [
        "verify",
        f"--timeout={seconds(effective.verifier_timeout_sec)}",
        f"--kill-grace={KILL_GRACE_SECONDS}",
        literal(f"--step-name={step.name}"),
    ]


def _environment(context: TrialContext, table: dict[str, str], effective: EffectiveStep) -> list[environment.EnvEntry]:
    return environment.merged(
        environment.resolve(table, context.spec.env),
        environment.resolve(effective.verifier_env, context.spec.env),
        [environment.entry(variable) for variable in context.spec.verifier.env],
    )


def _verifier_mounts(step: Step, role: Role, results: str, number: int) -> list[layout.Mount]:
    return [
        layout.mount("/logs/verifier", results),
        layout.mount(layout.RUN_MOUNT, layout.run_directory(role, step.index, number)),
    ]


def _tests_mounts(context: TrialContext, step: Step) -> list[layout.Mount]:
    mounts = []
    if context.task.has_shared_tests:
        mounts.append(layout.mount(layout.SHARED_TESTS_MOUNT, f"{layout.TASK}/tests", read_only=True))
    if step.has_tests:
        mounts.append(layout.mount(layout.STEP_TESTS_MOUNT, layout.step_source(step.name, "tests"), read_only=True))
    return mounts
