"""A few threads shared fairly by requests of very different sizes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(eq=False)
class _Job(Generic[T]):
    pieces: Sequence[Callable[[], T]]
    results: list[T | None]
    future: asyncio.Future[list[T]]
    taken: int = 0
    done: int = 0


class FairThreads:
    """Runs jobs made of short pieces. Whenever a thread is free, a new job's first piece and the next piece of a
    job already begun go in turn, and those begun take turns among themselves: a job of one piece waits for about
    one piece of others, however long these are.
    """

    def __init__(self, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="inference")
        self._free = threads
        self._fresh: deque[_Job[object]] = deque()
        self._begun: deque[_Job[object]] = deque()
        self._fresh_is_next = True
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, pieces: Sequence[Callable[[], T]]) -> list[T]:
        """The results of `pieces`, in order. A cancelled job's pieces that have not begun are dropped."""
        if not pieces:
            return []
        loop = asyncio.get_running_loop()
        job = _Job(pieces, [None] * len(pieces), loop.create_future())
        self._fresh.append(job)
        self._dispatch()
        return await job.future

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _dispatch(self) -> None:
        while self._free and (job := self._next()) is not None:
            index = job.taken
            job.taken += 1
            if job.taken < len(job.pieces):
                self._begun.append(job)
            self._free -= 1
            task = asyncio.create_task(self._piece(job, index))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _next(self) -> _Job[object] | None:
        while self._fresh or self._begun:
            fresh = bool(self._fresh) and (self._fresh_is_next or not self._begun)
            job = (self._fresh if fresh else self._begun).popleft()
            if not job.future.done():
                # A new job costs those begun their turn only if one of them was waiting for it.
                self._fresh_is_next = not (fresh and self._begun)
                return job
        return None

    async def _piece(self, job: _Job[object], index: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            job.results[index] = await loop.run_in_executor(self._executor, job.pieces[index])
            job.done += 1
            if job.done == len(job.pieces) and not job.future.done():
                job.future.set_result(list(job.results))
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits the job
            if not job.future.done():
                job.future.set_exception(error)
        finally:
            self._free += 1
            self._dispatch()
