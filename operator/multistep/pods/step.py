"""The step pod (workdir, setup.sh, healthcheck, agent) and the verifier pod (tests, reward)."""

from __future__ import annotations

from multistep.api.spec import AgentName, Persistence
from multistep.pods import environment, layout
from multistep.pods.collection import artifact_arguments, collect_arguments
from multistep.pods.common import MAIN_CONTAINER, Manifest, container, pod, resources
from multistep.pods.context import TrialContext
from multistep.pods.environment import literal
from multistep.pods.names import Role
from multistep.task import CollectConfig, EffectiveStep, HealthcheckConfig, Step, effective_step

KILL_GRACE_SECONDS = 10
"""Between TERM and KILL when a timeout ends a process tree."""

SLACK_SECONDS = 60
"""What the runner's own work may take on top of the stages' limits before Kubernetes ends the pod."""


def settings(context: TrialContext, step: Step) -> EffectiveStep:
    """Return the settings that hold for a step: the step's own, else the task's, else the format's defaults."""
    return effective_step(context.task, step, context.overrides)


def step_pod(context: TrialContext, index: int) -> Manifest:
    """Return the step pod of a step, by its index counted from 1."""
    step = context.step(index)
    effective = settings(context, step)
    agent = context.spec.agent
    mounts = _filesystem_mounts(context)
    mounts += [
        *_log_mounts(step),
        layout.mount(layout.INSTRUCTION_MOUNT, layout.step_source(step.name, "instruction.md"), read_only=True),
        layout.mount(layout.ARTIFACTS_MOUNT, layout.step_results(step.name, "artifacts")),
        layout.mount(layout.RUN_MOUNT, layout.run_directory(Role.STEP, index)),
    ]
    if step.has_workdir:
        source = layout.step_source(step.name, "workdir")
        mounts.append(layout.mount(layout.STEP_WORKDIR_MOUNT, source, read_only=True))
    if agent.name is AgentName.ORACLE and step.solution is not None:
        source = layout.step_source(step.name, "solution") if step.solution == "step" else f"{layout.TASK}/solution"
        mounts.append(layout.mount(layout.SOLUTION_MOUNT, source, read_only=True))
    if agent.image is not None:
        mounts.append(layout.mount(agent.image.path, layout.AGENT_BINARIES, read_only=True))
    main = container(context, MAIN_CONTAINER, _step_arguments(context, step, effective), mounts)
    config = context.task.config
    main["env"] = environment.merged(
        environment.resolve(config.environment.env, context.spec.env),
        environment.resolve(config.solution.env, context.spec.env) if agent.name is AgentName.ORACLE else [],
        [environment.entry(variable) for variable in agent.env],
    )
    main["resources"] = resources(effective.resources)
    return pod(context, Role.STEP, [main], step_index=index, deadline_seconds=step_deadline(context, index))


def verifier_pod(context: TrialContext, index: int) -> Manifest:
    """Return the verifier pod of a step: the filesystem as the agent left it, plus the tests."""
    step = context.step(index)
    effective = settings(context, step)
    mounts = _filesystem_mounts(context)
    mounts += [
        *_log_mounts(step),
        layout.mount("/logs/verifier", layout.step_results(step.name, "verifier")),
        layout.mount(layout.RUN_MOUNT, layout.run_directory(Role.VERIFIER, index)),
    ]
    if context.task.has_shared_tests:
        mounts.append(layout.mount(layout.SHARED_TESTS_MOUNT, f"{layout.TASK}/tests", read_only=True))
    if step.has_tests:
        mounts.append(layout.mount(layout.STEP_TESTS_MOUNT, layout.step_source(step.name, "tests"), read_only=True))
    arguments = [
        "verify",
        literal(f"--workdir={context.workspace.workdir}"),
        literal(f"--user={_user(context, effective.verifier_user)}"),
        f"--timeout={_seconds(effective.verifier_timeout_sec)}",
        f"--kill-grace={KILL_GRACE_SECONDS}",
        literal(f"--step-name={step.name}"),
    ]
    main = container(context, MAIN_CONTAINER, arguments, mounts)
    config = context.task.config
    main["env"] = environment.merged(
        environment.resolve(config.environment.env, context.spec.env),
        environment.resolve(effective.verifier_env, context.spec.env),
        [environment.entry(variable) for variable in context.spec.verifier.env],
    )
    main["resources"] = resources(effective.resources)
    return pod(context, Role.VERIFIER, [main], step_index=index, deadline_seconds=verifier_deadline(context, index))


def step_deadline(context: TrialContext, index: int) -> float | None:
    """Return the seconds that a step pod may live at most, or None where the agent has no timeout."""
    step = context.step(index)
    effective = settings(context, step)
    if effective.agent_timeout_sec is None:
        return None
    checks = [step.config.healthcheck, context.task.config.environment.healthcheck if index == 1 else None]
    return (
        context.spec.start_deadline_seconds
        + (context.spec.setup_timeout_seconds if step.has_setup else 0)
        + sum(_healthcheck_seconds(check) for check in checks if check is not None)
        + max(0.0, effective.agent_timeout_sec)
        + sum(hook.timeout_sec + KILL_GRACE_SECONDS for hook in _hooks(context, step))
        + KILL_GRACE_SECONDS
        + SLACK_SECONDS
    )


def verifier_deadline(context: TrialContext, index: int) -> float:
    """Return the seconds that a verifier pod may live at most."""
    effective = settings(context, context.step(index))
    return (
        context.spec.start_deadline_seconds
        + max(0.0, effective.verifier_timeout_sec)
        + KILL_GRACE_SECONDS
        + SLACK_SECONDS
    )


def _filesystem_mounts(context: TrialContext) -> list[layout.Mount]:
    if context.spec.workspace.persistence is Persistence.WORKDIR:
        return [layout.mount(context.workspace.workdir or "/", layout.WORKDIR)]
    mounts = [
        layout.mount(f"/{directory}", f"{layout.ROOT_FILESYSTEM}/{directory}")
        for directory in context.workspace.directories
    ]
    return [*mounts, layout.mount(layout.CARRY_MOUNT, layout.CARRY)]


def _log_mounts(step: Step) -> list[layout.Mount]:
    """Return what step pod and verifier pod both see of a step's results."""
    return [
        layout.mount("/logs/agent", layout.step_results(step.name, "agent")),
        layout.mount("/logs/artifacts", layout.step_results(step.name, "artifacts/logs/artifacts")),
    ]


def _step_arguments(context: TrialContext, step: Step, effective: EffectiveStep) -> list[str]:
    agent = context.spec.agent
    arguments = [
        "step",
        literal(f"--workdir={context.workspace.workdir}"),
        literal(f"--agent-user={_user(context, effective.agent_user)}"),
        f"--agent={agent.name.value}",
        f"--agent-timeout={_seconds(effective.agent_timeout_sec)}",
        f"--setup-timeout={context.spec.setup_timeout_seconds}",
        f"--kill-grace={KILL_GRACE_SECONDS}",
        literal(f"--step-name={step.name}"),
    ]
    if step.index == 1:
        arguments += _healthcheck_arguments("environment", context.task.config.environment.healthcheck)
    arguments += _healthcheck_arguments("step", step.config.healthcheck)
    arguments += collect_arguments(_hooks(context, step), _user(context, None))
    arguments += artifact_arguments(effective.artifacts)
    if agent.command is not None:
        arguments += ["--", *(literal(word) for word in agent.command)]
    return arguments


def _hooks(context: TrialContext, step: Step) -> list[CollectConfig]:
    """Return the collect hooks of a step: the task's, then its own."""
    return [*context.task.config.verifier.collect, *step.config.verifier.collect]


def _healthcheck_arguments(name: str, check: HealthcheckConfig | None) -> list[str]:
    if check is None:
        return []
    prefix = f"--healthcheck-{name}"
    return [
        literal(f"{prefix}-command={check.command}"),
        f"{prefix}-interval={_seconds(check.interval_sec)}",
        f"{prefix}-timeout={_seconds(check.timeout_sec)}",
        f"{prefix}-start-period={_seconds(check.start_period_sec)}",
        f"{prefix}-start-interval={_seconds(check.start_interval_sec)}",
        f"{prefix}-retries={check.retries}",
    ]


def _healthcheck_seconds(check: HealthcheckConfig) -> float:
    return check.start_period_sec + max(1, check.retries) * (check.interval_sec + check.timeout_sec)


def _seconds(value: float | None) -> str:
    return "none" if value is None else format(value, "f").rstrip("0").rstrip(".")


def _user(context: TrialContext, named: str | int | None) -> str:
    """Return the user as the runner takes it: the task's, else the image's own; empty means root."""
    if named is not None and named != "":
        return str(named)
    user = context.workspace.user
    if user is None or user.uid == 0:
        return ""
    return str(user.uid) if user.passwd_gid == user.gid else f"{user.uid}:{user.gid}"
