"""Callers that wait at the same time share requests to the endpoint."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from memory_plane.models.errors import EndpointFault, EndpointUnavailable
from memory_plane.models.isolate import Outcome

Lane = Literal["foreground", "background"]
Send = Callable[[list[str]], Awaitable[list[Outcome]]]


@dataclass(eq=False)
class _Call:
    """One caller's texts; `taken` of them are sent, `missing` outcomes are still to come."""

    texts: Sequence[str]
    outcomes: list[Outcome | None]
    future: asyncio.Future[list[Outcome]]
    lane: Lane
    taken: int = 0
    missing: int = 0

    @property
    def waiting(self) -> bool:
        return not self.future.done() and self.taken < len(self.texts)


@dataclass(frozen=True)
class _Slot:
    call: _Call
    position: int


class Batcher:
    """Sends texts in requests of at most `batch_size` texts and `batch_chars` characters.

    A text is sent as soon as the event loop turns, if fewer than `max_in_flight` requests are out; what waits
    meanwhile is sent together, taking from each caller in turn. The foreground lane (someone is waiting) has
    half of the requests to itself, so that background work cannot keep it from the endpoint.

    `send` answers one outcome for each text, so that one caller's bad text is his alone; an EndpointFault that
    it raises fails the calls that have texts in that request. Cancelling a caller cancels no request.
    """

    def __init__(self, send: Send, *, batch_size: int = 32, batch_chars: int = 200_000, max_in_flight: int = 4) -> None:
        self._send = send
        self._batch_size = batch_size
        self._batch_chars = batch_chars
        self._max_in_flight = max_in_flight
        self._queues: dict[Lane, deque[_Call]] = {"foreground": deque(), "background": deque()}
        self._in_flight: dict[asyncio.Task[None], Lane] = {}
        self._pump_scheduled = False

    async def submit(self, texts: Sequence[str], lane: Lane = "foreground") -> list[Outcome]:
        """The outcome for each of `texts`, in order. Raises the EndpointFault of the request that failed."""
        if not texts:
            return []
        loop = asyncio.get_running_loop()
        call = _Call(texts, [None] * len(texts), loop.create_future(), lane, missing=len(texts))
        self._queues[lane].append(call)
        if not self._pump_scheduled:
            # At the end of this turn of the loop, so that callers of the same turn share a request.
            self._pump_scheduled = True
            loop.call_soon(self._scheduled_pump)
        return await call.future

    async def aclose(self) -> None:
        """Cancel what is out and fail what waits."""
        for queue in self._queues.values():
            for call in queue:
                _fail_call(call, _closing())
            queue.clear()
        tasks = list(self._in_flight)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _scheduled_pump(self) -> None:
        self._pump_scheduled = False
        self._pump()

    def _pump(self) -> None:
        for lane, queue in self._queues.items():
            while queue and self._free(lane):
                slots = self._take(queue)
                if slots:
                    self._in_flight[asyncio.create_task(self._run(slots))] = lane

    def _free(self, lane: Lane) -> bool:
        if len(self._in_flight) >= self._max_in_flight:
            return False
        background = sum(other == "background" for other in self._in_flight.values())
        return lane == "foreground" or background < max(1, self._max_in_flight // 2)

    def _take(self, queue: deque[_Call]) -> list[_Slot]:
        """The next request: one text of each waiting call in turn, until it is full or none is left."""
        slots: list[_Slot] = []
        chars = 0
        while queue and len(slots) < self._batch_size:
            call = queue[0]
            if not call.waiting:
                queue.popleft()
                continue
            length = len(call.texts[call.taken])
            if slots and chars + length > self._batch_chars:
                break
            slots.append(_Slot(call, call.taken))
            chars += length
            call.taken += 1
            queue.rotate(-1)
        return slots

    async def _run(self, slots: list[_Slot]) -> None:
        try:
            outcomes = await self._send([slot.call.texts[slot.position] for slot in slots])
            for slot, outcome in zip(slots, outcomes, strict=True):
                _place(slot, outcome)
        except EndpointFault as fault:
            _fail(slots, fault)
        except BaseException as error:
            # Nobody awaits this task: without this the callers would wait for ever.
            _fail(slots, error if isinstance(error, Exception) else _closing())
            raise
        finally:
            task = asyncio.current_task()
            if task is not None:
                self._in_flight.pop(task, None)
            self._pump()


def _place(slot: _Slot, outcome: Outcome) -> None:
    call = slot.call
    call.outcomes[slot.position] = outcome
    call.missing -= 1
    if call.missing == 0 and not call.future.done():
        call.future.set_result([each for each in call.outcomes if each is not None])


def _fail(slots: list[_Slot], error: Exception) -> None:
    for slot in slots:
        _fail_call(slot.call, error)


def _fail_call(call: _Call, error: Exception) -> None:
    if not call.future.done():
        call.future.set_exception(error)


def _closing() -> EndpointUnavailable:
    return EndpointUnavailable("The process is shutting down; nothing more is sent to model endpoints.")
