"""The settings that hold for a step: the trial's, else the step's own, else the task's, else the format's default."""

from __future__ import annotations

from dataclasses import dataclass

from multistep.task.artifacts import ArtifactConfig, collected
from multistep.task.config import AgentConfig, StepConfig, TaskConfig, User, VerifierConfig, VerifierEnvironmentMode
from multistep.task.effective_network import NetworkPlan, network_plan
from multistep.task.environment import HealthcheckConfig
from multistep.task.overrides import Overrides, PhaseOverrides
from multistep.task.resources import Resources, environment_resources
from multistep.task.task import Step, Task
from multistep.task.verifier_environment import VerifierEnvironment, verifier_environment, verifier_mode


@dataclass(frozen=True)
class EffectiveStep:
    """The resolved settings of a step. Times are seconds.

    Attributes:
        agent_timeout_sec: None means no limit, 0 an immediate timeout.
        verifier_timeout_sec: 0 means an immediate timeout.
        agent_user: user of agent, setup.sh and the step's healthcheck; None means the image's own, "" is handed on as it is.
        verifier_user: as `agent_user`; never falls back to the agent's (FINDINGS 31).
        verifier_mode: whether the verifier shares the agent's environment.
        verifier_env: variables of the verifier, references not resolved.
        verifier_environment: the verifier's own environment; None in shared mode.
        verification_disabled: whether the trial does without verification.
        network: what may be reached in each phase.
        artifacts: what is collected, in this order.
        healthcheck: the step's own check, run after its setup.sh.
        resources: what the agent's environment asks for.
    """

    agent_timeout_sec: float | None
    verifier_timeout_sec: float
    agent_user: User | None
    verifier_user: User | None
    verifier_mode: VerifierEnvironmentMode
    verifier_env: dict[str, str]
    verifier_environment: VerifierEnvironment | None
    verification_disabled: bool
    network: NetworkPlan
    artifacts: tuple[ArtifactConfig, ...]
    healthcheck: HealthcheckConfig | None
    resources: Resources


_NO_OVERRIDES = Overrides()
_NO_AGENT = AgentConfig()
_NO_VERIFIER = VerifierConfig()


def effective_step(task: Task, step: Step | None, overrides: Overrides = _NO_OVERRIDES) -> EffectiveStep:
    """Resolve the settings of a step, or with None those of a task without steps."""
    config = task.config
    own = step.config if step else None
    agent = own.agent if own else _NO_AGENT
    verifier = own.verifier if own else _NO_VERIFIER
    return EffectiveStep(
        agent_timeout_sec=_agent_timeout(config.agent, agent, overrides),
        verifier_timeout_sec=_verifier_timeout(config.verifier, verifier, overrides),
        agent_user=agent.user if agent.user is not None else config.agent.user,
        verifier_user=verifier.user if verifier.user is not None else config.verifier.user,
        verifier_mode=verifier_mode(config, own),
        verifier_env={**config.verifier.env, **verifier.env, **overrides.verifier.env},
        verifier_environment=verifier_environment(
            config,
            own,
            step_definition=step.has_tests_definition if step else False,
            shared_definition=task.has_shared_tests_definition,
        ),
        verification_disabled=overrides.verifier.disable,
        network=network_plan(config, own, overrides),
        artifacts=_artifacts(config, own, overrides),
        healthcheck=own.healthcheck if own else None,
        resources=environment_resources(config.environment, overrides.environment),
    )


def _agent_timeout(inherited: AgentConfig, own: AgentConfig, overrides: Overrides) -> float | None:
    base = own.timeout_sec if own.timeout_sec is not None else inherited.timeout_sec
    # `or`: an override of 0 counts as not set, while a step's 0 is an immediate timeout (FINDINGS 15).
    base = overrides.agent.override_timeout_sec or base
    return None if base is None else _scaled(base, overrides.agent, overrides.agent_timeout_multiplier, overrides)


def _verifier_timeout(inherited: VerifierConfig, own: VerifierConfig, overrides: Overrides) -> float:
    """Return the trial's timeout where it sets one, else the step's, else the task's.

    The reference ignores the task's, because the step's default of 600 seconds always wins there: a setting that does nothing
    (FINDINGS 14).
    """
    base = own.timeout_sec if "timeout_sec" in own.model_fields_set else inherited.timeout_sec
    base = overrides.verifier.override_timeout_sec or base
    return _scaled(base, overrides.verifier, overrides.verifier_timeout_multiplier, overrides)


def _scaled(base: float, phase: PhaseOverrides, multiplier: float | None, overrides: Overrides) -> float:
    """Cap, then multiply: so the result may exceed the cap (FINDINGS 16). A cap of 0 is none."""
    capped = min(base, phase.max_timeout_sec) if phase.max_timeout_sec else base
    return capped * (overrides.timeout_multiplier if multiplier is None else multiplier)


def _artifacts(config: TaskConfig, own: StepConfig | None, overrides: Overrides) -> tuple[ArtifactConfig, ...]:
    return tuple(collected([*config.artifacts, *overrides.artifacts, *(own.artifacts if own else [])]))
