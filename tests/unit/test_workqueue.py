import asyncio

import pytest

from multistep.workqueue import WorkQueue


async def _run(queue: WorkQueue[str], workers: int = 2) -> asyncio.Task[None]:
    return asyncio.create_task(queue.run(workers))


async def _until(condition, seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)


async def test_wakeups_during_a_pass_coalesce_into_one_more() -> None:
    passes: list[str] = []
    release = asyncio.Event()

    async def work(key: str) -> None:
        passes.append(key)
        await release.wait()

    queue = WorkQueue(work)
    task = await _run(queue)
    queue.add("a")
    await _until(lambda: passes == ["a"])
    for _ in range(5):
        queue.add("a")
    release.set()
    await _until(lambda: passes == ["a", "a"])
    await asyncio.sleep(0.02)
    assert passes == ["a", "a"]
    task.cancel()


async def test_one_key_is_never_worked_on_twice_at_a_time() -> None:
    active, most = 0, 0

    async def work(key: str) -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0.001)
        active -= 1

    queue = WorkQueue(work)
    task = await _run(queue, workers=4)
    for _ in range(20):
        queue.add("a")
        await asyncio.sleep(0.0005)
    await _until(lambda: queue.oldest_age() == 0.0)
    assert most == 1
    task.cancel()


async def test_failed_pass_is_tried_again() -> None:
    calls = 0

    async def work(key: str) -> None:
        nonlocal calls
        calls += 1
        if calls < 2:
            raise RuntimeError("the API server is away")

    queue = WorkQueue(work)
    task = await _run(queue)
    queue.add("a")
    await _until(lambda: calls == 2)
    task.cancel()


async def test_pass_is_woken_when_it_asked_for_it() -> None:
    calls = 0

    async def work(key: str) -> float | None:
        nonlocal calls
        calls += 1
        return 0.01 if calls < 3 else None

    queue = WorkQueue(work)
    task = await _run(queue)
    queue.add("a")
    await _until(lambda: calls == 3)
    await asyncio.sleep(0.03)
    assert calls == 3
    task.cancel()


async def test_earlier_wakeup_replaces_the_later_one() -> None:
    calls = 0

    async def work(key: str) -> float | None:
        nonlocal calls
        calls += 1
        return 3600.0

    queue = WorkQueue(work)
    task = await _run(queue)
    queue.add("a")
    await _until(lambda: calls == 1)
    queue.add("a")
    await _until(lambda: calls == 2)
    task.cancel()


async def test_age_shows_a_pass_that_hangs() -> None:
    async def work(key: str) -> None:
        await asyncio.sleep(3600)

    queue = WorkQueue(work)
    task = await _run(queue)
    assert queue.oldest_age() == 0.0
    queue.add("a")
    await asyncio.sleep(0.02)
    assert queue.oldest_age() >= 0.01
    task.cancel()


@pytest.mark.parametrize("workers", [1, 4])
async def test_every_key_gets_its_pass(workers: int) -> None:
    seen: set[str] = set()

    async def work(key: str) -> None:
        seen.add(key)

    queue = WorkQueue(work)
    task = await _run(queue, workers)
    for number in range(100):
        queue.add(str(number))
    await _until(lambda: len(seen) == 100)
    task.cancel()
