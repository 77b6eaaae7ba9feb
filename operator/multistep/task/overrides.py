"""What a trial may set over its task: the fields of Harbor 0.26's trial configuration that change a step's settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator

from multistep.task.artifacts import Artifact
from multistep.task.network import normalize_host


class _Overrides(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _HostOverrides(_Overrides):
    extra_allowed_hosts: list[str] = Field(
        default_factory=list, description="Hosts to allow where the network is restricted; nothing where it is public."
    )

    @field_validator("extra_allowed_hosts")
    @classmethod
    def _normalize_hosts(cls, hosts: list[str]) -> list[str]:
        return [normalize_host(host) for host in hosts]


class PhaseOverrides(_HostOverrides):
    """Overrides of the agent's phase. A time of 0 counts as not set (FINDINGS 15)."""

    override_timeout_sec: float | None = Field(default=None, ge=0, description="Seconds, instead of the task's.")
    max_timeout_sec: float | None = Field(
        default=None, ge=0, description="Seconds at most; the multiplier comes after it (FINDINGS 16)."
    )
    env: dict[str, str] = Field(default_factory=dict, description="Environment variables, over the task's.")


class VerifierOverrides(PhaseOverrides):
    """Overrides of the verifier's phase."""

    disable: bool = Field(default=False, description="Do not verify at all.")


class EnvironmentOverrides(_HostOverrides):
    """Overrides of the environment. An amount of 0 counts, other than a time of 0."""

    override_cpus: int | float | None = Field(default=None, ge=0, description="CPU cores.")
    override_memory_mb: int | None = Field(default=None, ge=0, description="MiB.")
    override_storage_mb: int | None = Field(default=None, ge=0, description="MiB.")
    override_gpus: int | None = Field(default=None, ge=0)


class Overrides(_Overrides):
    """What a trial sets over its task."""

    agent: PhaseOverrides = Field(default_factory=PhaseOverrides)
    verifier: VerifierOverrides = Field(default_factory=VerifierOverrides)
    environment: EnvironmentOverrides = Field(default_factory=EnvironmentOverrides)
    artifacts: list[Artifact] = Field(
        default_factory=list, description="Collected after the task's, before the step's."
    )
    timeout_multiplier: float = Field(default=1.0, ge=0, description="Factor of all times that have none of their own.")
    agent_timeout_multiplier: float | None = Field(default=None, ge=0)
    verifier_timeout_multiplier: float | None = Field(default=None, ge=0)
    agent_setup_timeout_multiplier: float | None = Field(default=None, ge=0)
    environment_build_timeout_multiplier: float | None = Field(default=None, ge=0)
