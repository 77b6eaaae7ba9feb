"""What the manifests of a trial's children are made from."""

from __future__ import annotations

from dataclasses import dataclass

from multistep.api.spec import ArtifactSpec, MultiStepTrialSpec
from multistep.api.status import WorkspaceStatus
from multistep.pods.names import TrialIdentity
from multistep.pods.network_engine import NetworkEngine
from multistep.task import (
    ArtifactConfig,
    EnvironmentOverrides,
    Overrides,
    PhaseOverrides,
    Step,
    Task,
    VerifierEnvironment,
    VerifierOverrides,
)


def artifact_config(artifact: ArtifactSpec) -> ArtifactConfig:
    """Return an artifact of the trial as the task format knows it.

    Raises:
        ValidationError: the format refuses it; `engine.start` tells this before any pod.
    """
    return ArtifactConfig.model_validate(artifact.model_dump())


@dataclass(frozen=True)
class TrialContext:
    """One attempt of one trial: who it is, what it wants, and what is known of its volume and image."""

    identity: TrialIdentity
    spec: MultiStepTrialSpec
    task: Task
    workspace: WorkspaceStatus
    attempt: int
    operator_image: str
    network_engine: NetworkEngine = NetworkEngine.NONE

    @property
    def image(self) -> str:
        """The image of the task's environment; a valid task has one, see `engine.start`."""
        return self.spec.environment.image or self.task.config.environment.docker_image or ""

    def verifier_image(self, own: VerifierEnvironment) -> str:
        """Return the image of a separate verifier; empty where it would have to be built, which `engine.start` refuses."""
        own_image = own.docker_image if own.tests_bundled else self.image
        return self.spec.verifier.image or own_image or ""

    @property
    def overrides(self) -> Overrides:
        """What the trial sets over its task."""
        agent, verifier = self.spec.agent, self.spec.verifier
        return Overrides(
            agent=PhaseOverrides(
                override_timeout_sec=agent.timeout_seconds,
                max_timeout_sec=agent.max_timeout_seconds,
                extra_allowed_hosts=agent.extra_allowed_hosts,
            ),
            verifier=VerifierOverrides(
                override_timeout_sec=verifier.timeout_seconds,
                max_timeout_sec=verifier.max_timeout_seconds,
                disable=verifier.disabled,
                extra_allowed_hosts=verifier.extra_allowed_hosts,
            ),
            environment=EnvironmentOverrides(extra_allowed_hosts=self.spec.environment.extra_allowed_hosts),
            artifacts=[artifact_config(artifact) for artifact in self.spec.artifacts],
            timeout_multiplier=self.spec.timeout_multiplier,
            agent_timeout_multiplier=agent.timeout_multiplier,
            verifier_timeout_multiplier=verifier.timeout_multiplier,
        )

    def step(self, index: int) -> Step:
        """Return a step by its index, counted from 1."""
        return self.task.steps[index - 1]
