"""The engine against random orders of pod outcomes, stale and repeated observations, crashes and restarts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.world import SETTINGS, World, prepare_message, step_message, task_files, verifier_message

from multistep.api.status import MultiStepTrialStatus
from multistep.engine.decide import decide
from multistep.engine.types import CreateObject
from multistep.pods.names import LABEL_ATTEMPT, LABEL_ROLE, LABEL_STEP_INDEX

TERMINAL = ("Succeeded", "Stopped", "Failed")

STEP_ERRORS = [
    None,
    None,
    None,
    "AgentTimeoutError",
    "NonZeroAgentExitCodeError",
    "SetupError",
    "HealthcheckError",
    "TerminatedError",
]
REWARDS: list[Any] = [1, 0, 0.5, {"reward": 1, "x": -2}, {"x": 1}, {}, "", "nan", None]


class Engine(RuleBasedStateMachine):
    """One trial; each rule is something that happens in a cluster."""

    world: World

    @initialize(
        steps=st.integers(1, 4),
        least=st.sampled_from(["", "min_reward = 0.5", "min_reward = { x = 0.0 }"]),
        strategy=st.sampled_from(["mean", "final"]),
        backoff=st.integers(0, 2),
        deadline=st.sampled_from([None, 500]),
    )
    def begin(self, steps: int, least: str, strategy: str, backoff: int, deadline: int | None) -> None:
        spec: dict[str, Any] = {"backoffLimit": backoff}
        if deadline is not None:
            spec["activeDeadlineSeconds"] = deadline
        files = task_files(steps, config=f'multi_step_reward_strategy = "{strategy}"', step_config={1: least})
        self.world = World(files, **spec)
        self.final: str | None = None
        self.faults = False
        self.old: list[tuple[dict[str, Any], Any]] = []

    @rule()
    def wake(self) -> None:
        self.world.wake()

    @rule(actions=st.integers(0, 3))
    def crash(self, actions: int) -> None:
        """The operator is killed after some of its writes."""
        self.world.wake(crash_after=actions)

    @rule()
    def remember(self) -> None:
        """Keep an observation, for a second operator that is slow."""
        self.old = [*self.old[-2:], (json.loads(json.dumps(self.world.status)), self.world.observed())]

    @precondition(lambda self: self.old)
    @rule(which=st.integers(0, 2))
    def overlap(self, which: int) -> None:
        """A second operator acts on what it saw a while ago; its status write is refused, its actions are not."""
        status, observed = self.old[which % len(self.old)]
        trial = self.world.trial()
        stale = type(trial)(trial.identity, trial.generation, trial.spec, MultiStepTrialStatus.model_validate(status))
        for action in decide(stale, observed, self.world.now, SETTINGS).actions:
            if isinstance(action, CreateObject):
                self.world.apply(action)

    @rule(seconds=st.sampled_from([0.5, 5, 130, 4000]))
    def time_passes(self, seconds: float) -> None:
        self.world.sleep(seconds)
        # A pod that runs on that long past its deadline is on a node that does not answer.
        self.faults = self.faults or seconds > 1000

    @rule(data=st.data())
    def pod_starts(self, data: st.DataObject) -> None:
        names = [name for name in self.world.pods if self.world.pods[name]["status"]["phase"] == "Pending"]
        if names:
            self.world.start(data.draw(st.sampled_from(sorted(names))))

    @rule(data=st.data(), error=st.sampled_from(STEP_ERRORS), reward=st.sampled_from(REWARDS), garbage=st.booleans())
    def pod_ends(self, data: st.DataObject, error: str | None, reward: Any, garbage: bool) -> None:
        names = sorted(name for name in self.world.running() if not self.ended(name))
        if names:
            self.end(data.draw(st.sampled_from(names)), error, reward, garbage)

    @rule(data=st.data(), how=st.sampled_from(["evict", "delete"]))
    def pod_is_lost(self, data: st.DataObject, how: str) -> None:
        names = sorted(name for name in self.world.running() if not self.ended(name))
        if not names:
            return
        self.faults = True
        name = data.draw(st.sampled_from(names))
        if how == "evict":
            self.world.evict(name)
        else:
            del self.world.pods[name]

    @rule(suspend=st.booleans())
    def suspension(self, suspend: bool) -> None:
        self.world.spec.suspend = suspend
        self.world.generation += 1

    def ended(self, name: str) -> bool:
        statuses = self.world.pods[name]["status"].get("containerStatuses", [])
        return any("terminated" in status["state"] for status in statuses)

    def end(self, name: str, error: str | None, reward: Any, garbage: bool = False) -> None:
        role = self.world.pods[name]["metadata"]["labels"][LABEL_ROLE]
        if self.world.pods[name]["status"]["phase"] == "Pending":
            self.world.start(name)
            if self.ended(name):
                return
        self.faults = self.faults or (role == "step" and error == "TerminatedError")
        if garbage:
            self.world.finish(name, "{garbage", exit_code=1)
        elif role == "prepare":
            self.world.finish(name, prepare_message())
        elif role == "step":
            self.world.finish(name, step_message(error))
        else:
            self.world.finish(name, verifier_message(reward))

    @invariant()
    def agent_runs_at_most_once_per_step_and_attempt(self) -> None:
        assert all(runs <= 1 for runs in self.world.agent_runs.values()), self.world.agent_runs

    @invariant()
    def terminal_trial_never_changes(self) -> None:
        if self.world.status.get("phase") in TERMINAL:
            # The generation of a suspension that came too late is the one thing that may still be noted.
            now = json.dumps({key: value for key, value in self.world.status.items() if key != "observedGeneration"})
            assert self.final in (None, now)
            self.final = now

    @invariant()
    def reward_is_valid_only_over_a_graded_run(self) -> None:
        status = self.world.status
        if status.get("rewardValid"):
            attempted = [step for step in status["steps"] if step["phase"] != "Skipped"]
            assert status["phase"] in ("Succeeded", "Stopped")
            assert all(step["phase"] == "Completed" and "rewards" in step for step in attempted)
            assert status["gradedSteps"] == len(attempted)

    @invariant()
    def crash_of_the_operator_alone_is_never_a_fault(self) -> None:
        status = self.world.status
        blamed = status.get("previousAttempts") or (status.get("error") or {}).get("type") == "InfrastructureError"
        assert not blamed or self.faults, status

    @invariant()
    def steps_run_in_order(self) -> None:
        phases = [step["phase"] for step in self.world.status.get("steps", [])]
        seen_open = False
        for phase in phases:
            if phase in ("Running", "Verifying", "Completed", "Failed"):
                assert not seen_open, phases
            seen_open = seen_open or phase in ("Pending", "Running", "Verifying")

    @invariant()
    def decide_repeats_itself(self) -> None:
        assert self.world.decide() == self.world.decide()

    def teardown(self) -> None:
        """Whatever happened, a trial that is left alone from here on comes to its end."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.spec.suspend = False
        for _ in range(80):
            if world.status.get("phase") in TERMINAL:
                break
            for name in sorted(world.running()):
                labels = world.pods[name]["metadata"]["labels"]
                current = labels[LABEL_ATTEMPT] == str(world.status.get("attempt", 1))
                if current and not self.ended(name):
                    self.end(name, None, 1)
            world.wake()
        assert world.status["phase"] in TERMINAL, (world.status, list(world.pods))
        world.wake()
        still = [name for name in world.running() if not self.ended(name)]
        assert still == [], "nothing of a trial that ended runs on"
        assert all(int(pod["metadata"]["labels"].get(LABEL_STEP_INDEX, 0)) >= 0 for pod in world.pods.values())


TestEngine = Engine.TestCase
TestEngine.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
