"""Network settings of the format: `network_mode` and `allowed_hosts`."""

from __future__ import annotations

import re
from enum import StrEnum
from ipaddress import ip_address, ip_network

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


class NetworkMode(StrEnum):
    """What may be reached over the network."""

    NO_NETWORK = "no-network"
    PUBLIC = "public"
    ALLOWLIST = "allowlist"


class FormatModel(BaseModel):
    """Base of the format's models. Unknown keys are kept out here and reported by `unknown_keys`.

    Infinite numbers are written to JSON as texts, which are read back as numbers: JSON has no other way to keep them, and a
    `min_reward` of infinity that became null would stop to stop.
    """

    model_config = ConfigDict(extra="ignore", frozen=False, ser_json_inf_nan="strings")


class PhaseNetwork(FormatModel):
    """Network of a phase ([agent], [verifier]): only where it is set does it differ from its environment's."""

    network_mode: NetworkMode | None = Field(default=None, description="no-network, public or allowlist.")
    allowed_hosts: list[str] | None = Field(default=None, description="Hosts that an allowlist allows.")

    @field_validator("allowed_hosts")
    @classmethod
    def _normalize_hosts(cls, hosts: list[str] | None) -> list[str] | None:
        return None if hosts is None else [normalize_host(host) for host in hosts]

    @model_validator(mode="after")
    def _check_hosts_need_allowlist(self) -> PhaseNetwork:
        given = self.allowed_hosts is not None if self.network_mode is None else bool(self.allowed_hosts)
        if given and self.network_mode is not NetworkMode.ALLOWLIST:
            raise ValueError('allowed_hosts needs network_mode = "allowlist"')
        return self


def normalize_host(host: str) -> str:
    """Return a host of an allowlist in its normal form: lower case, no final dot, compressed addresses.

    Raises:
        ValueError: it is no host name, leading wildcard, address or CIDR range.
    """
    host = host.strip().lower().rstrip(".")
    if not host:
        raise ValueError("a host of allowed_hosts must not be empty")
    if "/" in host or ":" in host:
        return _normalize_address(host)
    name = host.removeprefix("*.")
    if "*" in name:
        raise ValueError('a wildcard stands at the start of a host only, as in "*.example.com"')
    if name != host and _is_address(name):
        raise ValueError("a wildcard needs a host name, not an address")
    if not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError("a host of allowed_hosts is a name, an address or a CIDR range: no scheme, port or path")
    return host


def _normalize_address(host: str) -> str:
    try:
        if "%" in host:
            raise ValueError("a zone is no part of an allowed address")
        if "/" in host:
            return ip_network(host, strict=True).compressed
        return ip_address(host).compressed
    except ValueError as error:
        raise ValueError(
            "a host of allowed_hosts is a name, an address or a CIDR range: no scheme, port or path"
        ) from error


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
