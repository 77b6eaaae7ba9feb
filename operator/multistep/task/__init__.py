"""The Harbor task format: files, task.toml, validation, and a step's effective settings. No Kubernetes here."""

from multistep.task.artifacts import Artifact, ArtifactConfig, collection_plan
from multistep.task.bundle import BundleError, Limits, extract, pack, split, tree_from_bundle
from multistep.task.config import (
    AgentConfig,
    CollectConfig,
    StepConfig,
    TaskConfig,
    VerifierConfig,
    VerifierEnvironmentMode,
)
from multistep.task.directory import tree_from_directory
from multistep.task.effective import EffectiveStep, effective_step
from multistep.task.effective_network import NetworkPlan, NetworkPolicy
from multistep.task.env_template import EnvReference, parse_env_value
from multistep.task.environment import EnvironmentConfig, HealthcheckConfig, McpServerConfig
from multistep.task.inline import tree_from_inline
from multistep.task.instruction import instruction_text
from multistep.task.load import LoadedTask, load_task
from multistep.task.network import NetworkMode, normalize_host
from multistep.task.overrides import EnvironmentOverrides, Overrides, PhaseOverrides, VerifierOverrides
from multistep.task.problem import Problem
from multistep.task.resources import Resources
from multistep.task.task import Step, Task
from multistep.task.tree import Entry, FileTree, TaskTreeError
from multistep.task.unsupported import unsupported
from multistep.task.verifier_environment import VerifierEnvironment

__all__ = [
    "AgentConfig",
    "Artifact",
    "ArtifactConfig",
    "BundleError",
    "CollectConfig",
    "EffectiveStep",
    "Entry",
    "EnvReference",
    "EnvironmentConfig",
    "EnvironmentOverrides",
    "FileTree",
    "HealthcheckConfig",
    "Limits",
    "LoadedTask",
    "McpServerConfig",
    "NetworkMode",
    "NetworkPlan",
    "NetworkPolicy",
    "Overrides",
    "PhaseOverrides",
    "Problem",
    "Resources",
    "Step",
    "StepConfig",
    "Task",
    "TaskConfig",
    "TaskTreeError",
    "VerifierConfig",
    "VerifierEnvironment",
    "VerifierEnvironmentMode",
    "VerifierOverrides",
    "collection_plan",
    "effective_step",
    "extract",
    "instruction_text",
    "load_task",
    "normalize_host",
    "pack",
    "parse_env_value",
    "split",
    "tree_from_bundle",
    "tree_from_directory",
    "tree_from_inline",
    "unsupported",
]
