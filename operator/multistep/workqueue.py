"""A work queue of keys: each key is worked on by one task at a time, and wake-ups that arrive meanwhile coalesce into one more pass.

The shape is that of controller-runtime's queue. Failures are tried again with a growing delay; a pass may ask to be woken at a later time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY_SECONDS = 0.5
LAST_DELAY_SECONDS = 60.0


class WorkQueue(Generic[Key]):
    """Keys that wait for a pass.

    Args:
        work: the pass; returns the seconds after which it wants to be called again, or None.
    """

    def __init__(self, work: Callable[[Key], Awaitable[float | None]]) -> None:
        self._work = work
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._since: dict[Key, float] = {}
        """Keys that are queued or at work, and since when (the loop's clock)."""
        self._active: set[Key] = set()
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}

    def add(self, key: Key) -> None:
        """Wake a key up now."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._active:
            self._again.add(key)
        elif key not in self._since:
            self._since[key] = asyncio.get_running_loop().time()
            self._ready.put_nowait(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Wake a key up later, unless something wakes it earlier."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        self._timers[key] = asyncio.get_running_loop().call_later(max(0.0, seconds), self.add, key)

    async def run(self, workers: int) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._run_worker())

    def oldest_age(self) -> float:
        """Return the seconds that the oldest key has been queued or at work: what a liveness probe should look at."""
        now = asyncio.get_running_loop().time()
        return max((now - since for since in self._since.values()), default=0.0)

    async def _run_worker(self) -> None:
        while True:
            key = await self._ready.get()
            self._active.add(key)
            self._since[key] = asyncio.get_running_loop().time()
            delay = await self._run_once(key)
            self._active.discard(key)
            self._since.pop(key, None)
            if key in self._again:
                self._again.discard(key)
                self.add(key)
            elif delay is not None and key not in self._timers:
                self.add_after(key, delay)

    async def _run_once(self, key: Key) -> float | None:
        try:
            delay = await self._work(key)
        except Exception:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            pause = float(min(FIRST_DELAY_SECONDS * 2.0 ** min(failures - 1, 10), LAST_DELAY_SECONDS))
            logger.exception("%s: pass failed (%d in a row), next try in %.1f s", key, failures, pause)
            return pause
        self._failures.pop(key, None)
        return delay
