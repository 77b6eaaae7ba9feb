"""What step pods and verifier pods have in common: a step's settings, the shared filesystem, users and flags of the runner."""

from __future__ import annotations

from multistep.api.spec import Persistence
from multistep.pods import layout
from multistep.pods.context import TrialContext
from multistep.task import EffectiveStep, Step, effective_step

KILL_GRACE_SECONDS = 10
"""Between TERM and KILL when a timeout ends a process tree."""

SLACK_SECONDS = 60
"""What the runner's own work may take on top of the stages' limits before Kubernetes ends the pod."""


def settings(context: TrialContext, step: Step) -> EffectiveStep:
    """Return the settings that hold for a step: the step's own, else the task's, else the format's defaults."""
    return effective_step(context.task, step, context.overrides)


def filesystem_mounts(context: TrialContext) -> list[layout.Mount]:
    """Return the mounts of the agent's environment: what persists from pod to pod."""
    if context.spec.workspace.persistence is Persistence.WORKDIR:
        return [layout.mount(context.workspace.workdir or "/", layout.WORKDIR)]
    mounts = [
        layout.mount(f"/{directory}", f"{layout.ROOT_FILESYSTEM}/{directory}")
        for directory in context.workspace.directories
    ]
    return [*mounts, layout.mount(layout.CARRY_MOUNT, layout.CARRY)]


def environment_files_mounts(context: TrialContext) -> list[layout.Mount]:
    """Return what the runner copies to the working directory when an environment starts; nothing where the image was built with it."""
    if not context.task.has_environment_files:
        return []
    return [layout.mount(layout.ENVIRONMENT_MOUNT, f"{layout.TASK}/environment", read_only=True)]


def log_mounts(step: Step) -> list[layout.Mount]:
    """Return what step pod and shared verifier both see of a step's results."""
    return [
        layout.mount("/logs/agent", layout.step_results(step.name, "agent")),
        layout.mount("/logs/artifacts", layout.step_results(step.name, "artifacts/logs/artifacts")),
    ]


def seconds(value: float | None) -> str:
    """Return a time as the runner takes it."""
    return "none" if value is None else format(value, "f").rstrip("0").rstrip(".")


def user(context: TrialContext, named: str | int | None) -> str:
    """Return a user of the agent's environment as the runner takes it: the task's, else the image's own; empty means root."""
    if named is not None and named != "":
        return str(named)
    own = context.workspace.user
    if own is None or own.uid == 0:
        return ""
    return str(own.uid) if own.passwd_gid == own.gid else f"{own.uid}:{own.gid}"
