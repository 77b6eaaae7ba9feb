"""The step pod: workdir, setup.sh, healthcheck and agent; and the setup pod, where setup and agent differ in what they may reach."""

from __future__ import annotations

from multistep.api.spec import AgentName
from multistep.pods import environment, layout
from multistep.pods.accelerators import accelerators
from multistep.pods.collection import artifact_arguments, collect_arguments
from multistep.pods.common import MAIN_CONTAINER, Manifest, container, pod, resources
from multistep.pods.context import TrialContext
from multistep.pods.environment import literal
from multistep.pods.mcp import mcp_config
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
from multistep.pods.verifier import side_verifier, verifies_in_step_pod, verifying_seconds
from multistep.task import CollectConfig, EffectiveStep, HealthcheckConfig, Step


def needs_setup_pod(context: TrialContext, index: int) -> bool:
    """Whether a step's setup runs in a pod of its own: a pod has one network policy, and the agent's phase has another one."""
    step = context.step(index)
    network = settings(context, step).network
    return network.agent_environment != network.agent_phase and (step.has_setup or bool(_healthchecks(context, step)))


def setup_pod(context: TrialContext, index: int) -> Manifest:
    """Return the pod that runs setup.sh and healthchecks in the network of the environment, before the agent's pod."""
    step = context.step(index)
    effective = settings(context, step)
    main = _container(context, Role.SETUP, step, ["--part=setup", *_setup_arguments(context, step)])
    return pod(
        context,
        Role.SETUP,
        [main],
        step_index=index,
        deadline_seconds=setup_deadline(context, index),
        network=effective.network.agent_environment,
        accelerators=accelerators(context, effective.resources),
    )


def step_pod(context: TrialContext, index: int) -> Manifest:
    """Return the step pod of a step, by its index counted from 1."""
    step = context.step(index)
    effective = settings(context, step)
    setup = ["--part=agent"] if needs_setup_pod(context, index) else _setup_arguments(context, step)
    arguments = [*setup, *_agent_arguments(context, step, effective)]
    in_step_pod = verifies_in_step_pod(context, step)
    if in_step_pod:
        arguments.append("--before-verifier=yes")
    agent = context.spec.agent
    command = [] if agent.command is None else ["--", *(literal(word) for word in agent.command)]
    main = _container(context, Role.STEP, step, [*arguments, *command])
    containers, volumes = [main], []
    if in_step_pod:
        main["volumeMounts"].append(layout.TURN_VOLUME_MOUNT)
        containers.append(side_verifier(context, step))
        volumes.append(layout.TURN_VOLUME)
    return pod(
        context,
        Role.STEP,
        containers,
        step_index=index,
        volumes=volumes,
        deadline_seconds=step_deadline(context, index),
        network=effective.network.agent_phase,
        accelerators=accelerators(context, effective.resources),
    )


def setup_deadline(context: TrialContext, index: int) -> float:
    """Return the seconds that a setup pod may live at most."""
    return context.spec.start_deadline_seconds + _setup_seconds(context, context.step(index)) + SLACK_SECONDS


def step_deadline(context: TrialContext, index: int) -> float | None:
    """Return the seconds that a step pod may live at most, or None where the agent has no timeout."""
    step = context.step(index)
    effective = settings(context, step)
    if effective.agent_timeout_sec is None:
        return None
    return (
        context.spec.start_deadline_seconds
        + (0 if needs_setup_pod(context, index) else _setup_seconds(context, step))
        + max(0.0, effective.agent_timeout_sec)
        + sum(hook.timeout_sec + KILL_GRACE_SECONDS for hook in _hooks(context, step))
        + (verifying_seconds(context, step) if verifies_in_step_pod(context, step) else 0)
        + KILL_GRACE_SECONDS
        + SLACK_SECONDS
    )


def _container(context: TrialContext, role: Role, step: Step, arguments: list[str]) -> Manifest:
    agent, effective = context.spec.agent, settings(context, step)
    mounts = filesystem_mounts(context)
    mounts += [
        *log_mounts(step),
        layout.mount(layout.INSTRUCTION_MOUNT, layout.step_source(step.name, "instruction.md"), read_only=True),
        layout.mount(layout.ARTIFACTS_MOUNT, layout.step_results(step.name, "artifacts")),
        layout.mount(layout.RUN_MOUNT, layout.run_directory(role, step.index)),
    ]
    if step.has_workdir:
        source = layout.step_source(step.name, "workdir")
        mounts.append(layout.mount(layout.STEP_WORKDIR_MOUNT, source, read_only=True))
    if step.index == 1 and (role is Role.SETUP or not needs_setup_pod(context, step.index)):
        mounts += environment_files_mounts(context)
    if role is Role.STEP and agent.name is AgentName.ORACLE and step.solution is not None:
        source = layout.step_source(step.name, "solution") if step.solution == "step" else f"{layout.TASK}/solution"
        mounts.append(layout.mount(layout.SOLUTION_MOUNT, source, read_only=True))
    if agent.image is not None:
        mounts.append(layout.mount(agent.image.path, layout.AGENT_BINARIES, read_only=True))
    common = [
        "step",
        literal(f"--workdir={context.workspace.workdir}"),
        literal(f"--agent-user={user(context, effective.agent_user)}"),
        f"--agent={agent.name.value if role is Role.STEP else AgentName.NOP.value}",
        f"--kill-grace={KILL_GRACE_SECONDS}",
        literal(f"--step-name={step.name}"),
    ]
    main = container(context, MAIN_CONTAINER, [*common, *arguments], mounts)
    config = context.task.config
    main["env"] = environment.merged(
        environment.resolve(config.environment.env, context.spec.env),
        environment.resolve(config.solution.env, context.spec.env) if agent.name is AgentName.ORACLE else [],
        [environment.entry(variable) for variable in agent.env],
    )
    main["resources"] = resources(effective.resources, accelerators(context, effective.resources))
    return main


def _setup_arguments(context: TrialContext, step: Step) -> list[str]:
    arguments = [f"--setup-timeout={context.spec.setup_timeout_seconds}"]
    for name, check in _healthchecks(context, step).items():
        prefix = f"--healthcheck-{name}"
        arguments += [
            literal(f"{prefix}-command={check.command}"),
            f"{prefix}-interval={seconds(check.interval_sec)}",
            f"{prefix}-timeout={seconds(check.timeout_sec)}",
            f"{prefix}-start-period={seconds(check.start_period_sec)}",
            f"{prefix}-start-interval={seconds(check.start_interval_sec)}",
            f"{prefix}-retries={check.retries}",
        ]
    return arguments


def _agent_arguments(context: TrialContext, step: Step, effective: EffectiveStep) -> list[str]:
    config = context.task.config.environment
    return [
        *([literal(f"--mcp-config={mcp_config(config.mcp_servers)}")] if config.mcp_servers else []),
        *([literal(f"--skills-dir={config.skills_dir}")] if config.skills_dir else []),
        f"--agent-timeout={seconds(effective.agent_timeout_sec)}",
        *collect_arguments(_hooks(context, step), user(context, None)),
        *artifact_arguments(effective.artifacts),
    ]


def _hooks(context: TrialContext, step: Step) -> list[CollectConfig]:
    """Return the collect hooks of a step: the task's, then its own."""
    return [*context.task.config.verifier.collect, *step.config.verifier.collect]


def _healthchecks(context: TrialContext, step: Step) -> dict[str, HealthcheckConfig]:
    """Return the checks that run before a step's agent; the environment's before the first step only."""
    checks = {
        "environment": context.task.config.environment.healthcheck if step.index == 1 else None,
        "step": step.config.healthcheck,
    }
    return {name: check for name, check in checks.items() if check is not None}


def _setup_seconds(context: TrialContext, step: Step) -> float:
    return (context.spec.setup_timeout_seconds if step.has_setup else 0) + sum(
        check.start_period_sec + max(1, check.retries) * (check.interval_sec + check.timeout_sec)
        for check in _healthchecks(context, step).values()
    )
