"""`task.toml` as models: every field of Harbor 0.26's format, by its own names. Times are seconds, sizes MiB."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator, model_validator

from multistep.task.artifacts import MAIN_SERVICE, ArtifactConfig, check_service, collected
from multistep.task.environment import EnvironmentConfig, HealthcheckConfig
from multistep.task.network import FormatModel, PhaseNetwork
from multistep.task.step_name import check_step_name, collision_key

_PACKAGE_NAME = re.compile(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]*/[a-zA-Z0-9_-][a-zA-Z0-9._-]*\n?")

User = str | int


class Author(FormatModel):
    """An author of the task."""

    name: str
    email: str | None = None


class PackageConfig(FormatModel):
    """`[task]`: the task as a package."""

    name: str = Field(description="organization/name.")
    version: str | None = Field(default=None, min_length=1)
    description: str = ""
    authors: list[Author] = Field(default_factory=list)
    keywords: list[str] = Field(default_factory=list)

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not _PACKAGE_NAME.fullmatch(name) or ".." in name:
            raise ValueError(
                "a package is called organization/name, with letters, digits, hyphens, underscores and dots"
            )
        return name


class AgentConfig(PhaseNetwork):
    """`[agent]` and `[steps.agent]`."""

    timeout_sec: float | None = Field(default=None, description="Seconds that the agent may take; none means no limit.")
    user: User | None = Field(default=None, description="User that the agent runs as; the image's own when absent.")


class VerifierEnvironmentMode(StrEnum):
    """Where the verifier runs: where the agent did, or in an environment of its own."""

    SHARED = "shared"
    SEPARATE = "separate"


class CollectConfig(FormatModel):
    """`[[verifier.collect]]`: a command between agent and collection."""

    command: str
    service: str = MAIN_SERVICE
    timeout_sec: float = 60.0
    user: User | None = None

    @field_validator("service")
    @classmethod
    def _check_service(cls, value: str) -> str:
        return check_service(value)


class VerifierConfig(PhaseNetwork):
    """`[verifier]` and `[steps.verifier]`."""

    timeout_sec: float = Field(default=600.0, description="Seconds that the tests may take.")
    env: dict[str, str] = Field(default_factory=dict, description="Environment of the tests; a value may be ${VAR}.")
    user: User | None = Field(default=None, description="User that the tests run as; the image's own when absent.")
    environment_mode: VerifierEnvironmentMode | None = None
    environment: EnvironmentConfig | None = None
    collect: list[CollectConfig] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_mode(self) -> VerifierConfig:
        if self.environment_mode is VerifierEnvironmentMode.SHARED and self.environment is not None:
            raise ValueError('environment_mode = "shared" contradicts an environment of the verifier: remove one')
        return self

    @property
    def own_mode(self) -> VerifierEnvironmentMode | None:
        """The mode that this very table sets; an environment alone means separate."""
        if self.environment_mode is None and self.environment is not None:
            return VerifierEnvironmentMode.SEPARATE
        return self.environment_mode


class SolutionConfig(FormatModel):
    """`[solution]`."""

    env: dict[str, str] = Field(default_factory=dict)


class StepConfig(FormatModel):
    """`[[steps]]`: one step."""

    name: str = Field(description="Name of the step's directory below steps/.")
    agent: AgentConfig = Field(default_factory=AgentConfig)
    verifier: VerifierConfig = Field(default_factory=VerifierConfig)
    min_reward: float | dict[str, float] | None = Field(
        default=None,
        description="Least reward, or least value of each key, with which the trial goes on after this step.",
    )
    healthcheck: HealthcheckConfig | None = None
    artifacts: list[str | ArtifactConfig] = Field(default_factory=list)

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        return check_step_name(name)


class RewardStrategy(StrEnum):
    """`multi_step_reward_strategy`."""

    MEAN = "mean"
    FINAL = "final"


class TaskConfig(FormatModel):
    """`task.toml`."""

    schema_version: str = "1.4"
    task: PackageConfig | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    verifier: VerifierConfig = Field(default_factory=VerifierConfig)
    agent: AgentConfig = Field(default_factory=AgentConfig)
    environment: EnvironmentConfig = Field(default_factory=EnvironmentConfig)
    solution: SolutionConfig = Field(default_factory=SolutionConfig)
    source: str | None = None
    multi_step_reward_strategy: RewardStrategy | None = None
    steps: list[StepConfig] | None = None
    artifacts: list[str | ArtifactConfig] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _accept_version(cls, data: Any) -> Any:
        if isinstance(data, dict) and "version" in data:
            version = data["version"]
            data = {key: value for key, value in data.items() if key != "version"}
            data.setdefault("schema_version", version)
        return data

    @field_validator("steps")
    @classmethod
    def _check_names_differ(cls, steps: list[StepConfig] | None) -> list[StepConfig] | None:
        seen: dict[str, str] = {}
        for step in steps or []:
            key = collision_key(step.name)
            if key in seen:
                raise ValueError(
                    f"the steps {seen[key]!r} and {step.name!r} would share a directory on some file systems: "
                    "names must differ in more than case"
                )
            seen[key] = step.name
        return steps

    @model_validator(mode="after")
    def _finish(self) -> TaskConfig:
        environments = [self.environment, self.verifier.environment]
        environments += [step.verifier.environment for step in self.steps or []]
        for environment in environments:
            if environment is not None:
                environment.apply_allow_internet()
        for entries in (self.artifacts, *(step.artifacts for step in self.steps or [])):
            collected(entries)
        return self
