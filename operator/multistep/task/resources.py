"""What an environment asks for of the machine."""

from __future__ import annotations

from dataclasses import dataclass

from multistep.task.environment import EnvironmentConfig, TpuConfig
from multistep.task.overrides import EnvironmentOverrides


@dataclass(frozen=True)
class Resources:
    """What an environment asks for; None means no setting.

    Attributes:
        cpus: CPU cores.
        memory_mb: MiB of memory.
        storage_mb: MiB of ephemeral storage.
        gpus: number of GPUs.
        gpu_types: acceptable types of GPU, in no order; empty means any.
        tpu: a slice of TPUs.
    """

    cpus: int | float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    gpus: int | None = None
    gpu_types: tuple[str, ...] = ()
    tpu: TpuConfig | None = None


def environment_resources(table: EnvironmentConfig, over: EnvironmentOverrides | None = None) -> Resources:
    """Return what a table asks for; an amount that the trial sets wins, also one of 0."""
    over = over or EnvironmentOverrides()
    return Resources(
        cpus=table.cpus if over.override_cpus is None else over.override_cpus,
        memory_mb=table.memory_mb if over.override_memory_mb is None else over.override_memory_mb,
        storage_mb=table.storage_mb if over.override_storage_mb is None else over.override_storage_mb,
        gpus=table.gpus if over.override_gpus is None else over.override_gpus,
        gpu_types=tuple(table.gpu_types or ()),
        tpu=table.tpu,
    )
