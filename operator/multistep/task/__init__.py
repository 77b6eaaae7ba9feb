"""The Harbor task format: files, task.toml, validation, and a step's effective settings. No Kubernetes here."""

from multistep.task.bundle import BundleError, Limits, extract, pack, split, tree_from_bundle
from multistep.task.config import StepConfig, TaskConfig
from multistep.task.directory import tree_from_directory
from multistep.task.effective import EffectiveStep, effective_step
from multistep.task.env_template import EnvReference, parse_env_value
from multistep.task.environment import HealthcheckConfig
from multistep.task.instruction import instruction_text
from multistep.task.load import LoadedTask, Step, Task, load_task
from multistep.task.problem import Problem
from multistep.task.tree import Entry, FileTree, TaskTreeError, tree_from_inline
from multistep.task.unsupported import unsupported

__all__ = [
    "BundleError",
    "EffectiveStep",
    "Entry",
    "EnvReference",
    "FileTree",
    "HealthcheckConfig",
    "Limits",
    "LoadedTask",
    "Problem",
    "Step",
    "StepConfig",
    "Task",
    "TaskConfig",
    "TaskTreeError",
    "effective_step",
    "extract",
    "instruction_text",
    "load_task",
    "pack",
    "parse_env_value",
    "split",
    "tree_from_bundle",
    "tree_from_directory",
    "tree_from_inline",
    "unsupported",
]
