"""What every model of the custom resource shares: names, casing and small value types."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

GROUP = "multistep.dev"
VERSION = "v1alpha1"
KIND = "MultiStepTrial"
PLURAL = "multisteptrials"
API_VERSION = f"{GROUP}/{VERSION}"

OpenObject = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
"""An object that the API server of the pod validates, not ours (an affinity, a security context)."""

ObjectName = Annotated[str, StringConstraints(min_length=1, max_length=253)]
"""Name of another object in the trial's namespace (a DNS subdomain)."""

Seconds = Annotated[int, Field(ge=0, le=31_536_000)]
"""A whole number of seconds, at most one year."""


Timeout = Annotated[float, Field(ge=0, le=31_536_000, allow_inf_nan=False)]
"""Seconds, fractions allowed; 0 counts as not set, as in Harbor's trial configuration."""

Multiplier = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
"""A factor of times. 0 means an immediate timeout, as in Harbor's trial configuration."""


class ResourceModel(BaseModel):
    """Base of all models of the resource: camelCase in YAML, snake_case in Python, unknown keys refused."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", validate_default=False)
