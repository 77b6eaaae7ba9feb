"""What a step may reach over the network, in each of its phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from multistep.task.config import StepConfig, TaskConfig, VerifierEnvironmentMode
from multistep.task.environment import EnvironmentConfig
from multistep.task.network import NetworkMode, PhaseNetwork
from multistep.task.overrides import Overrides
from multistep.task.verifier_environment import verifier_mode, verifier_settings


@dataclass(frozen=True)
class NetworkPolicy:
    """A mode, and the hosts that an allowlist allows."""

    mode: NetworkMode
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class NetworkPlan:
    """The policies of a step.

    Attributes:
        agent_environment: of the agent's environment as such (setup.sh, healthcheck).
        agent_phase: while the agent runs.
        verifier_environment: of a separate verifier's environment as such; None in shared mode.
        verifier_phase: while the tests run.
    """

    agent_environment: NetworkPolicy
    agent_phase: NetworkPolicy
    verifier_environment: NetworkPolicy | None
    verifier_phase: NetworkPolicy


def network_plan(config: TaskConfig, step: StepConfig | None, overrides: Overrides) -> NetworkPlan:
    """Resolve the policies of a step; None stands for a task without steps."""
    environment_hosts = overrides.environment.extra_allowed_hosts
    verifier_hosts = overrides.verifier.extra_allowed_hosts
    agent_environment = _extended(_baseline(config.environment), environment_hosts)
    agent_explicit = _explicit(step.agent if step else None, config.agent)
    verifier_explicit = _explicit(step.verifier if step else None, config.verifier)
    verifier_environment = None
    if verifier_mode(config, step) is VerifierEnvironmentMode.SEPARATE:
        settings = verifier_settings(config, step)
        verifier_environment = _baseline(settings)
        if settings is config.environment:
            # A table of its own is its own business: it may be public where the task is not (FINDINGS 46).
            verifier_environment = _extended(verifier_environment, environment_hosts)
        verifier_environment = _extended(verifier_environment, verifier_hosts)
    return NetworkPlan(
        agent_environment=agent_environment,
        agent_phase=_extended(agent_explicit or agent_environment, overrides.agent.extra_allowed_hosts),
        verifier_environment=verifier_environment,
        verifier_phase=_extended(verifier_explicit or verifier_environment or agent_environment, verifier_hosts),
    )


def _baseline(environment: EnvironmentConfig) -> NetworkPolicy:
    return NetworkPolicy(environment.network_mode, tuple(environment.allowed_hosts or ()))


def _explicit(own: PhaseNetwork | None, inherited: PhaseNetwork) -> NetworkPolicy | None:
    for phase in (own, inherited):
        if phase is not None and phase.network_mode is not None:
            return NetworkPolicy(phase.network_mode, tuple(phase.allowed_hosts or ()))
    return None


def _extended(policy: NetworkPolicy, hosts: Sequence[str]) -> NetworkPolicy:
    """Allow more hosts. Nothing changes where all are allowed; no network becomes an allowlist (FINDINGS 55)."""
    if policy.mode is NetworkMode.PUBLIC or not hosts:
        return policy
    return NetworkPolicy(NetworkMode.ALLOWLIST, tuple(dict.fromkeys([*policy.hosts, *hosts])))
