"""Fair threads: a short job waits for about one piece of a long one, and dropped work is not done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from memory_plane.dev.fair_threads import FairThreads


class Workbench:
    """Pieces that note their names in the order they are worked on; the first waits until told to go on."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.started = threading.Event()
        self.go_on = threading.Event()

    def piece(self, name: str) -> str:
        self.order.append(name)
        self.started.set()
        self.go_on.wait(20)
        return name.upper()

    def job(self, name: str, count: int) -> list[Callable[[], str]]:
        return [partial(self.piece, f"{name}{n}") for n in range(count)]


@pytest.fixture
async def one_thread() -> AsyncIterator[FairThreads]:
    threads = FairThreads(1)
    yield threads
    threads.close()


async def started(bench: Workbench) -> None:
    assert await asyncio.to_thread(bench.started.wait, 20)


async def test_results_are_in_the_order_of_the_pieces(one_thread: FairThreads) -> None:
    bench = Workbench()
    bench.go_on.set()
    assert await one_thread.run(bench.job("a", 3)) == ["A0", "A1", "A2"]
    assert await one_thread.run([]) == []


async def test_a_short_job_waits_for_one_piece_of_a_long_one(one_thread: FairThreads) -> None:
    bench = Workbench()
    jobs = [asyncio.create_task(one_thread.run(bench.job("long", 5)))]
    await started(bench)
    jobs.append(asyncio.create_task(one_thread.run(bench.job("short", 1))))
    await queued(one_thread)
    bench.go_on.set()
    await asyncio.gather(*jobs)
    assert bench.order == ["long0", "short0", "long1", "long2", "long3", "long4"]


async def test_long_jobs_take_turns_and_new_ones_do_not_starve_them(one_thread: FairThreads) -> None:
    bench = Workbench()
    jobs = [asyncio.create_task(one_thread.run(bench.job("a", 4)))]
    await started(bench)
    jobs += [asyncio.create_task(one_thread.run(bench.job(name, 1))) for name in ("q", "r")]
    jobs.append(asyncio.create_task(one_thread.run(bench.job("b", 3))))
    await queued(one_thread)
    bench.go_on.set()
    await asyncio.gather(*jobs)
    assert bench.order == ["a0", "q0", "a1", "r0", "a2", "b0", "a3", "b1", "b2"]


async def test_what_a_cancelled_job_has_not_begun_is_dropped(one_thread: FairThreads) -> None:
    bench = Workbench()
    leaving = asyncio.create_task(one_thread.run(bench.job("leaving", 5)))
    await started(bench)
    staying = asyncio.create_task(one_thread.run(bench.job("staying", 1)))
    await queued(one_thread)
    leaving.cancel()
    bench.go_on.set()
    assert await staying == ["STAYING0"]
    assert bench.order == ["leaving0", "staying0"]


async def test_a_piece_that_fails_fails_its_job_alone(one_thread: FairThreads) -> None:
    bench = Workbench()
    bench.go_on.set()

    def broken() -> str:
        raise ValueError("broken")

    bad = asyncio.create_task(one_thread.run([broken, *bench.job("bad", 1)]))
    good = asyncio.create_task(one_thread.run(bench.job("good", 2)))
    with pytest.raises(ValueError, match="broken"):
        await bad
    assert await good == ["GOOD0", "GOOD1"]


async def queued(threads: FairThreads) -> None:
    """Return once the tasks made so far have put their jobs into the queue."""
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()
