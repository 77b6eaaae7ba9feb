"""What makes a task impossible for this very trial, in this very cluster. All of it is said before any pod."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from multistep.api.spec import AgentName, NetworkEnforcement, Persistence
from multistep.pods.context import TrialContext, artifact_config
from multistep.pods.environment import unresolved
from multistep.pods.mcp import unresolved_headers
from multistep.pods.network_engine import unenforceable
from multistep.pods.phase import settings
from multistep.pods.verifier import verifies_in_step_pod
from multistep.task import NetworkMode, NetworkPolicy, Problem, normalize_host

CONFIG = "task.toml"


def trial_problems(context: TrialContext) -> list[Problem]:
    """Return a problem for each image, variable, artifact, host or network policy that this trial cannot have."""
    hosts = [problem for key, hosts in _extra_hosts(context).items() for problem in _host_problems(key, hosts)]
    # The settings of the steps cannot be resolved with hosts that are none.
    checks = [_images, _workdir, _artifacts, _variables, *([] if hosts else [_verifiers, _networks])]
    return [*hosts, *dict.fromkeys(problem for check in checks for problem in check(context))]


def restricted(context: TrialContext) -> list[tuple[str, str | None]]:
    """Return the phases of the task whose network is restricted, and for each what keeps this cluster from enforcing that, if anything."""
    found: dict[str, NetworkPolicy] = {}
    for step in context.task.steps:
        plan = settings(context, step).network
        phases = {"environment": plan.agent_environment, "agent": plan.agent_phase}
        if not context.spec.verifier.disabled:
            phases["verifier"] = plan.verifier_phase
        for name, policy in phases.items():
            if policy.mode is not NetworkMode.PUBLIC:
                found.setdefault(f"{name} of step {step.name!r}", policy)
    return [(name, unenforceable(policy, context.network_engine)) for name, policy in found.items()]


def _images(context: TrialContext) -> Iterator[Problem]:
    if not context.image:
        advice = "the task names no image: build environment/Dockerfile, push it and name it here or in spec.environment.image of the trial"
        yield Problem(CONFIG, "environment.docker_image", None, advice)


def _workdir(context: TrialContext) -> Iterator[Problem]:
    if context.spec.workspace.persistence is Persistence.WORKDIR and context.task.config.environment.workdir == "/":
        advice = "persistence Workdir needs a working directory below /: name one, or use persistence Filesystem"
        yield Problem(CONFIG, "environment.workdir", "'/'", advice)


def _artifacts(context: TrialContext) -> Iterator[Problem]:
    """Yield a problem for each artifact of the trial that the task format would refuse, too."""
    for number, artifact in enumerate(context.spec.artifacts):
        try:
            artifact_config(artifact)
        except ValidationError as error:
            message = error.errors()[0]["msg"].removeprefix("Value error, ")
            yield Problem(f"spec.artifacts[{number}]", None, repr(artifact.source), message)


def _variables(context: TrialContext) -> Iterator[Problem]:
    spec, config = context.spec, context.task.config
    yield from unresolved("environment.env", config.environment.env, spec.env)
    if spec.agent.name is AgentName.ORACLE:
        yield from unresolved("solution.env", config.solution.env, spec.env)
    if spec.agent.name is AgentName.COMMAND:
        yield from unresolved_headers(config.environment.mcp_servers, spec.agent.env)
    for step in [] if spec.verifier.disabled else context.task.steps:
        own = step.config.verifier.env
        inherited = {name: text for name, text in config.verifier.env.items() if name not in own}
        yield from unresolved(f"steps[{step.index - 1}].verifier.env", own, spec.env)
        yield from unresolved("verifier.env", inherited, spec.env)


def _verifiers(context: TrialContext) -> Iterator[Problem]:
    if context.spec.verifier.disabled:
        return
    for step in context.task.steps:
        effective, key = settings(context, step), f"steps[{step.index - 1}].verifier"
        own = effective.verifier_environment
        if own is not None:
            yield from unresolved(f"{key}.environment.env", own.env, context.spec.env)
            if own.tests_bundled and not context.verifier_image(own):
                advice = "build it, push it and name it here, or in spec.verifier.image of the trial"
                found = f"only {own.definition_directory}/Dockerfile"
                yield Problem(CONFIG, f"{key}.environment.docker_image", found, advice)
        elif verifies_in_step_pod(context, step) and effective.network.agent_phase != effective.network.verifier_phase:
            advice = "a pod has one network policy, and verifier and agent have different ones: set verifier.placement to Pod"
            yield Problem("spec.verifier.placement", None, f"StepPod for step {step.name!r}", advice)
        if verifies_in_step_pod(context, step) and context.spec.verifier.retries:
            advice = "a verifier in the step pod cannot run again, because what the agent left running ends with the pod: set it to 0"
            yield Problem("spec.verifier.retries", None, str(context.spec.verifier.retries), advice)


def _networks(context: TrialContext) -> Iterator[Problem]:
    if context.spec.network_policy.enforcement is NetworkEnforcement.BEST_EFFORT:
        return
    for phase, gap in restricted(context):
        if gap is not None:
            advice = f"{gap}; or set spec.networkPolicy.enforcement to BestEffort to run without"
            yield Problem(CONFIG, "network_mode", phase, advice)


def _extra_hosts(context: TrialContext) -> dict[str, list[str]]:
    spec = context.spec
    return {
        "spec.environment.extraAllowedHosts": spec.environment.extra_allowed_hosts,
        "spec.agent.extraAllowedHosts": spec.agent.extra_allowed_hosts,
        "spec.verifier.extraAllowedHosts": spec.verifier.extra_allowed_hosts,
    }


def _host_problems(key: str, hosts: list[str]) -> Iterator[Problem]:
    for host in hosts:
        try:
            normalize_host(host)
        except ValueError as error:
            yield Problem(key, None, repr(host), str(error))
