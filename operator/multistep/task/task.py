"""A loaded task, as it is kept beside a trial: the configuration and what its files say, without their contents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, PlainSerializer

from multistep.task.config import StepConfig, TaskConfig
from multistep.task.network import FormatModel

Origin = Literal["step", "shared"]


def _as_written(config: BaseModel) -> dict[str, Any]:
    """Return what the task sets, and nothing else: however the task as a whole is dumped.

    Whether a step sets a value decides what it inherits, so a default that is written must come back as written, and one that is not
    must not.
    """
    return config.model_dump(mode="json", exclude_unset=True)


class Step(FormatModel):
    """A step with what lies in its directory."""

    index: int = Field(description="Position, counted from 1.")
    config: Annotated[StepConfig, PlainSerializer(_as_written)]
    has_workdir: bool = Field(default=False, description="There is a workdir/ to copy.")
    has_setup: bool = Field(default=False, description="There is a workdir/setup.sh.")
    has_tests: bool = Field(default=False, description="The step has a tests/ directory of its own.")
    has_tests_definition: bool = Field(default=False, description="Its tests/ describes an image.")
    has_trajectory: bool = Field(default=False, description="There is a trajectory.json to seed the agent with.")
    test_script: Origin | None = Field(default=None, description="Whose test.sh grades the step.")
    solution: Origin | None = Field(
        default=None,
        description="Whose solution/ serves the step: its own hides the shared one, even without a script.",
    )
    has_solve_script: bool = Field(default=False, description="That solution has a solve.sh.")

    @property
    def name(self) -> str:
        """The step's name."""
        return self.config.name


class Task(FormatModel):
    """A task that can be run, without its files' contents: small enough to be kept beside a trial."""

    config: Annotated[TaskConfig, PlainSerializer(_as_written)]
    digest: str = Field(description="SHA-256 over all files.")
    steps: list[Step] = Field(default_factory=list)
    has_shared_tests: bool = Field(default=False, description="There is a tests/ directory for all steps.")
    has_shared_tests_definition: bool = Field(default=False, description="That tests/ describes an image.")
    has_environment_files: bool = Field(
        default=False, description="environment/ describes no image: its files go to the working directory."
    )
    files: list[str] = Field(
        default_factory=list, description="Files outside of steps/ that ask for a feature by being there."
    )

    @property
    def name(self) -> str | None:
        """The package's name, if it has one."""
        return self.config.task.name if self.config.task else None

    @property
    def is_multi_step(self) -> bool:
        """Whether the task has [[steps]]."""
        return bool(self.steps)
