"""One pass over one trial: observe, decide, apply. Level-triggered: it never matters what woke it up."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import NamedTuple

from multistep.api.status import ErrorStatus, MultiStepTrialStatus
from multistep.cluster.apply import Applier
from multistep.cluster.client import ApiError, Client
from multistep.cluster.observe import InvalidTrialError, Observation, Observer
from multistep.engine.decide import decide
from multistep.engine.lifecycle import stall
from multistep.engine.rejection import reject
from multistep.engine.types import Decision, Settings

logger = logging.getLogger(__name__)


class TrialKey(NamedTuple):
    """Which trial."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the key as kubectl users write it."""
        return f"{self.namespace}/{self.name}"


class Reconciler:
    """Brings trials forward."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._observer = Observer(client)
        self._applier = Applier(client)
        self._settings = settings

    async def reconcile(self, key: TrialKey) -> float | None:
        """Make one pass; return the seconds after which the next is due, or None when only an event can bring news."""
        try:
            return await self._pass(key)
        except ApiError as error:
            if error.code == 409:
                logger.debug("%s: changed since it was read, looking again", key)
                return 0.0
            if error.code == 404:
                logger.debug("%s: gone while at work: %s", key, error)
                return None
            raise

    async def _pass(self, key: TrialKey) -> float | None:
        now = datetime.now(UTC)
        try:
            observation = await self._observer.observe(*key)
        except InvalidTrialError as error:
            logger.error("%s: the resource cannot be read, nothing is done: %s", key, error)
            if error.status is not None:
                status = stall(error.status, error.document["metadata"].get("generation", 0), str(error), now)
                await self._applier.write_status(error.document, status)
            return None
        if observation is None:
            return None
        decision = decide(observation.trial, observation.observed, now, self._settings)
        return await self._apply(key, observation, decision, now)

    async def _apply(self, key: TrialKey, observation: Observation, decision: Decision, now: datetime) -> float | None:
        trial = observation.trial
        rejection = await self._applier.act(trial.identity, decision.creations)
        if rejection is not None:
            logger.warning("%s: %s %s refused: %s", key, rejection.kind, rejection.name, rejection.message)
            decision = reject(trial, observation.observed, rejection, now, self._settings)
        written = await self._applier.write_status(observation.document, decision.status)
        await self._applier.act(trial.identity, decision.removals)
        if written:
            _log(key, trial.status, decision.status)
            await self._applier.send_events(trial.identity, decision.events, now)
        if decision.wake_at is None:
            return None
        return max(0.0, (decision.wake_at - datetime.now(UTC)).total_seconds())


def _log(key: TrialKey, old: MultiStepTrialStatus, new: MultiStepTrialStatus) -> None:
    """Log changes of state only, in one line each."""
    if (old.phase, old.reason, old.step) != (new.phase, new.reason, new.step):
        logger.info("%s: %s %s, step %s: %s", key, new.phase, new.reason, new.step, new.message)
    error: ErrorStatus | None = new.error
    if error is not None and old.error is None:
        logger.info("%s: %s: %s", key, error.type, error.message)
