"""From files to a task: parse task.toml, validate it with its directory, and report all problems at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import tomli
from pydantic import BaseModel, Field, ValidationError

from multistep.task.config import StepConfig, TaskConfig, VerifierEnvironmentMode
from multistep.task.ignore import IgnoreRules
from multistep.task.network import FormatModel
from multistep.task.problem import Problem, shown
from multistep.task.tree import FileTree
from multistep.task.unknown import unknown_keys

CONFIG = "task.toml"
MAXIMUM_STEPS = 500
"""The status of a trial has an entry per step, and an object of Kubernetes has about 1.5 MB."""

MAXIMUM_SECONDS = 365 * 24 * 3600

Origin = Literal["step", "shared"]


class Step(FormatModel):
    """A step with what lies in its directory."""

    index: int = Field(description="Position, counted from 1.")
    config: StepConfig
    has_workdir: bool = False
    has_setup: bool = False
    has_tests: bool = False
    test_script: Origin | None = None
    solution: Origin | None = None

    @property
    def name(self) -> str:
        """The step's name."""
        return self.config.name


class Task(FormatModel):
    """A task that can be run, without its files' contents: small enough to be kept beside a trial."""

    config: TaskConfig
    digest: str = Field(description="SHA-256 over all files.")
    steps: list[Step] = Field(default_factory=list)
    has_shared_tests: bool = False
    files: list[str] = Field(default_factory=list, description="Files outside of steps/ that decide what can be run.")

    @property
    def name(self) -> str | None:
        """The package's name, if it has one."""
        return self.config.task.name if self.config.task else None

    @property
    def is_multi_step(self) -> bool:
        """Whether the task has [[steps]]."""
        return bool(self.steps)


@dataclass(frozen=True)
class LoadedTask:
    """The result of loading: the task, or why there is none; warnings in any case."""

    task: Task | None
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


def load_task(tree: FileTree, *, verification_disabled: bool = False) -> LoadedTask:
    """Load a task from its files. Never raises on bad input: what is wrong is in the result, all of it."""
    document, problems = _parse(tree)
    if document is None:
        return LoadedTask(None, tuple(problems))
    warnings = tuple(unknown_keys(document))
    try:
        config = TaskConfig.model_validate(document)
    except ValidationError as error:
        return LoadedTask(None, tuple(_from_pydantic(error, document)), warnings)
    except RecursionError:
        return LoadedTask(None, (Problem(CONFIG, None, None, "its tables are nested too deeply"),), warnings)
    rules = IgnoreRules(tree)
    problems = [
        *_bad_numbers(config),
        *_step_count(config),
        *_links(tree, config, rules),
        *rules.problems,
        *_missing_files(tree, config, rules, verification_disabled),
    ]
    if problems:
        return LoadedTask(None, tuple(dict.fromkeys(problems)), warnings)
    return LoadedTask(_task(tree, config), (), warnings)


def _parse(tree: FileTree) -> tuple[dict[str, Any] | None, list[Problem]]:
    if not tree.is_file(CONFIG):
        return None, [Problem(CONFIG, None, None, "there is no such file: a task's directory has task.toml at its top")]
    try:
        text = tree.read(CONFIG).decode("utf-8")
    except UnicodeDecodeError as error:
        return None, [Problem(CONFIG, None, None, f"it is not UTF-8 text (byte {error.start}): save it as UTF-8")]
    try:
        # Read as text files are: bare carriage returns end a line, too.
        return tomli.loads(text.replace("\r\n", "\n").replace("\r", "\n")), []
    except (tomli.TOMLDecodeError, RecursionError) as error:
        advice = "; the file starts with a byte order mark: save it without" if text.startswith("\ufeff") else ""
        return None, [Problem(CONFIG, None, None, f"it is no TOML: {error}{advice}")]


def _from_pydantic(error: ValidationError, document: dict[str, Any]) -> Iterator[Problem]:
    for item in error.errors(include_url=False):
        key = _key(item["loc"], document)
        message = item["msg"].removeprefix("Value error, ")
        found = None if item["type"] == "missing" or isinstance(item["input"], dict) else shown(item["input"])
        yield Problem(CONFIG, key or None, found, message[:1].lower() + message[1:])


def _key(location: tuple[int | str, ...], document: Any) -> str:
    """Write a location as a TOML path. Pydantic adds the names of a union's members, which are no keys: they are left out."""
    text, node = "", document
    for number, part in enumerate(location):
        last = number == len(location) - 1
        if isinstance(part, int):
            text += f"[{part}]"
            node = node[part] if isinstance(node, list) and part < len(node) else None
        elif isinstance(node, dict) and (part in node or last):
            text += f".{part}" if text else part
            node = node.get(part)
    return text


def _bad_numbers(config: TaskConfig) -> Iterator[Problem]:
    """Refuse times and thresholds that are no usable numbers: the reference takes NaN for "no limit" or "always passes"."""
    for path, value in _walk(config, ""):
        field = path.rpartition(".")[2]
        if not isinstance(value, float | int) or isinstance(value, bool):
            continue
        if "min_reward" in path and math.isnan(value):
            yield Problem(CONFIG, path, shown(value), "a reward cannot be compared with it: write a number")
        elif field.endswith("_sec") and (math.isnan(value) or value < 0 or value > MAXIMUM_SECONDS):
            yield Problem(CONFIG, path, shown(value), f"a time is a number of seconds from 0 to {MAXIMUM_SECONDS}")
        elif field in ("cpus", "memory_mb", "storage_mb", "gpus") and value < 0:
            yield Problem(CONFIG, path, shown(value), "an amount must not be negative")


def _walk(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, BaseModel):
        for name in type(node).model_fields:
            if name != "metadata":
                yield from _walk(getattr(node, name), f"{path}.{name}" if path else name)
    elif isinstance(node, dict):
        for name, value in node.items():
            yield from _walk(value, f"{path}.{name}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _walk(value, f"{path}[{number}]")
    else:
        yield path, node


def _step_count(config: TaskConfig) -> Iterator[Problem]:
    count = len(config.steps or [])
    if count > MAXIMUM_STEPS:
        yield Problem(CONFIG, "steps", f"{count} steps", f"a task may have {MAXIMUM_STEPS} steps: split it")


def _links(tree: FileTree, config: TaskConfig, rules: IgnoreRules) -> Iterator[Problem]:
    """Refuse symbolic links that leave the task, or go in circles, in what is uploaded."""
    tops = ["tests", "solution", *(f"steps/{step.name}" for step in config.steps or [])]
    if config.steps:
        tops.insert(0, "steps")
    for path, entry in tree.items():
        below = any(path == top or (top != "steps" and path.startswith(f"{top}/")) for top in tops)
        if entry.kind != "symlink" or not below or rules.excludes(path):
            continue
        if entry.target.startswith("/") or _leaves(path, entry.target):
            yield Problem(
                path, None, shown(entry.target), "this symbolic link leads out of the task: copy the file instead"
            )
        elif _is_cycle(tree, path):
            yield Problem(path, None, shown(entry.target), "this symbolic link goes in a circle")


def _leaves(path: str, target: str) -> bool:
    depth = path.count("/")
    for part in target.split("/"):
        depth += -1 if part == ".." else 0 if part in ("", ".") else 1
        if depth < 0:
            return True
    return False


def _is_cycle(tree: FileTree, path: str) -> bool:
    """Whether a link leads back to itself, or to a directory that it lies in."""
    found = tree.resolve(path)
    if found is None:
        return not _dangles(tree, path)
    return path.startswith(f"{found}/" if found else "")


def _dangles(tree: FileTree, path: str) -> bool:
    """Whether a link leads to nothing (allowed), as opposed to leading back to itself."""
    seen = set()
    while path in tree and tree[path].kind == "symlink":
        if path in seen:
            return False
        seen.add(path)
        base = path.rpartition("/")[0].split("/") if "/" in path else []
        for part in tree[path].target.split("/"):
            if part == "..":
                base = base[:-1]
            elif part not in ("", "."):
                base = [*base, part]
        path = "/".join(base)
    return True


def _missing_files(
    tree: FileTree, config: TaskConfig, rules: IgnoreRules, verification_disabled: bool
) -> Iterator[Problem]:
    if not config.steps:
        if not tree.exists("instruction.md"):
            yield Problem("instruction.md", None, None, "there is no such file, and task.toml has no [[steps]]")
        if not verification_disabled:
            yield from _test_problem(tree, config, None, rules)
        return
    for step in config.steps:
        directory = f"steps/{step.name}"
        if not tree.exists(directory):
            yield Problem(
                directory, None, None, "there is no such directory: each step of task.toml has one of its name"
            )
            continue
        path = f"{directory}/instruction.md"
        if not tree.exists(path):
            yield Problem(path, None, None, "there is no such file: each step needs its instruction")
        elif not tree.is_file(path):
            yield Problem(path, None, None, "it must be a text file")
        elif not _is_text(tree.read(path)):
            yield Problem(path, None, None, "it is not UTF-8 text: save it as UTF-8")
        if not verification_disabled:
            yield from _test_problem(tree, config, step, rules)


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _test_problem(tree: FileTree, config: TaskConfig, step: StepConfig | None, rules: IgnoreRules) -> Iterator[Problem]:
    """Report a missing test script, unless the verifier has an environment of its own that brings the tests."""
    if _tests_are_bundled(tree, config, step):
        return
    candidates = [f"steps/{step.name}/tests/test.sh"] if step else []
    candidates.append("tests/test.sh")
    found = next((path for path in candidates if tree.exists(path)), None)
    if found is None:
        yield Problem(candidates[0], None, None, f"there is no test script: write {' or '.join(candidates)}")
    elif not tree.is_file(found):
        yield Problem(
            found, None, None, "it must be a file: the script that writes /logs/verifier/reward.txt or reward.json"
        )
    elif rules.excludes(found):
        yield Problem(found, None, None, "a .harborignore leaves it out, and the verifier needs it")


def verifier_mode(config: TaskConfig, step: StepConfig | None) -> VerifierEnvironmentMode:
    """Return where a step's verifier runs: as the step says, else as the task says, else shared."""
    own = step.verifier.own_mode if step else None
    return own or config.verifier.own_mode or VerifierEnvironmentMode.SHARED


def _tests_are_bundled(tree: FileTree, config: TaskConfig, step: StepConfig | None) -> bool:
    if verifier_mode(config, step) is VerifierEnvironmentMode.SHARED:
        return False
    sources = [(config.verifier.environment, "tests")]
    if step is not None:
        sources.insert(0, (step.verifier.environment, f"steps/{step.name}/tests"))
    return any(
        (environment is not None and environment.docker_image)
        or tree.is_file(f"{directory}/Dockerfile")
        or tree.is_file(f"{directory}/docker-compose.yaml")
        for environment, directory in sources
    )


def _task(tree: FileTree, config: TaskConfig) -> Task:
    steps = [_step(tree, index, step) for index, step in enumerate(config.steps or [], start=1)]
    files = [path for path in tree if path.startswith("environment/") and path.count("/") == 1]
    return Task(
        config=config,
        digest=tree.digest(),
        steps=steps,
        has_shared_tests=tree.is_directory("tests"),
        files=files[:100],
    )


def _step(tree: FileTree, index: int, config: StepConfig) -> Step:
    directory = f"steps/{config.name}"
    if tree.exists(f"{directory}/solution"):
        solution: Origin | None = "step" if tree.is_directory(f"{directory}/solution") else None
    else:
        solution = "shared" if tree.is_directory("solution") else None
    if tree.is_file(f"{directory}/tests/test.sh"):
        test_script: Origin | None = "step"
    else:
        test_script = "shared" if tree.is_file("tests/test.sh") else None
    return Step(
        index=index,
        config=config,
        has_workdir=tree.is_directory(f"{directory}/workdir"),
        has_setup=tree.is_file(f"{directory}/workdir/setup.sh"),
        has_tests=tree.is_directory(f"{directory}/tests"),
        test_script=test_script,
        solution=solution,
    )
