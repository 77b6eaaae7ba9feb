"""What the manifests of a trial's children are made from."""

from __future__ import annotations

from dataclasses import dataclass

from multistep.api.spec import MultiStepTrialSpec
from multistep.api.status import WorkspaceStatus
from multistep.pods.names import TrialIdentity
from multistep.task import Step, Task


@dataclass(frozen=True)
class TrialContext:
    """One attempt of one trial: who it is, what it wants, and what is known of its volume and image."""

    identity: TrialIdentity
    spec: MultiStepTrialSpec
    task: Task
    workspace: WorkspaceStatus
    attempt: int
    operator_image: str

    @property
    def image(self) -> str:
        """The image of the task's environment; a valid task has one, see `engine.start`."""
        return self.spec.environment.image or self.task.config.environment.docker_image or ""

    def step(self, index: int) -> Step:
        """Return a step by its index, counted from 1."""
        return self.task.steps[index - 1]
