"""The settings that hold for a step: the step's own, else the task's, else the format's default."""

from __future__ import annotations

from dataclasses import dataclass

from multistep.task.config import User, VerifierConfig, VerifierEnvironmentMode
from multistep.task.load import Step, Task, verifier_mode


@dataclass(frozen=True)
class EffectiveStep:
    """The resolved settings of a step. Times are seconds; None means no limit. A user of None is the image's own."""

    agent_timeout_sec: float | None
    verifier_timeout_sec: float
    agent_user: User | None
    verifier_user: User | None
    verifier_mode: VerifierEnvironmentMode
    verifier_env: dict[str, str]


def effective_step(task: Task, step: Step) -> EffectiveStep:
    """Resolve the settings of a step."""
    config, own = task.config, step.config
    return EffectiveStep(
        agent_timeout_sec=config.agent.timeout_sec if own.agent.timeout_sec is None else own.agent.timeout_sec,
        verifier_timeout_sec=_verifier_timeout(own.verifier, config.verifier),
        agent_user=own.agent.user if own.agent.user is not None else config.agent.user,
        verifier_user=own.verifier.user if own.verifier.user is not None else config.verifier.user,
        verifier_mode=verifier_mode(config, own),
        verifier_env={**config.verifier.env, **own.verifier.env},
    )


def _verifier_timeout(own: VerifierConfig, inherited: VerifierConfig) -> float:
    """Return the step's timeout where it sets one, else the task's.

    The reference ignores the task's, because the step's default of 600 seconds always wins there: a setting that does nothing.
    """
    return own.timeout_sec if "timeout_sec" in own.model_fields_set else inherited.timeout_sec
