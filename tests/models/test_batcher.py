"""Sharing requests: who waits together goes together, and nobody's fault is another's."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from memory_plane.models.batcher import Batcher
from memory_plane.models.errors import EndpointUnavailable
from memory_plane.models.isolate import Outcome, TextFault


class Gate:
    """A `send` that records its batches and answers when told to; `fault` spoils one answer."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.open = asyncio.Event()
        self.fault: Exception | None = None
        self._changed = asyncio.Condition()

    async def send(self, texts: list[str]) -> list[Outcome]:
        async with self._changed:
            self.batches.append(texts)
            self._changed.notify_all()
        await self.open.wait()
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        return [TextFault("bad", "bad") if "BAD" in text else as_vector(text) for text in texts]

    async def sent(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.batches) >= count)


def as_vector(text: str) -> Outcome:
    return np.array([float(sum(map(ord, text)))], dtype=np.float32)


def texts_of(name: str, count: int) -> list[str]:
    return [f"{name}{n}" for n in range(count)]


async def test_one_caller_is_sent_at_once_and_gets_its_own() -> None:
    gate = Gate()
    gate.open.set()
    outcomes = await Batcher(gate.send).submit(["b", "a"])
    assert outcomes == [as_vector("b"), as_vector("a")]
    assert gate.batches == [["b", "a"]]
    assert await Batcher(gate.send).submit([]) == []


async def test_callers_of_one_turn_share_a_request() -> None:
    gate = Gate()
    gate.open.set()
    batcher = Batcher(gate.send)
    answers = await asyncio.gather(*(batcher.submit([name]) for name in "abcde"))
    assert answers == [[as_vector(name)] for name in "abcde"]
    assert gate.batches == [list("abcde")]


async def test_what_waits_while_requests_are_out_goes_together() -> None:
    gate = Gate()
    batcher = Batcher(gate.send, max_in_flight=1)
    first = asyncio.create_task(batcher.submit(["first"]))
    await gate.sent(1)
    later = [asyncio.create_task(batcher.submit([name])) for name in "abc"]
    await asyncio.gather(*(turn() for _ in range(3)))
    assert gate.batches == [["first"]]
    gate.open.set()
    await asyncio.gather(first, *later)
    assert gate.batches == [["first"], ["a", "b", "c"]]


async def turn() -> None:
    """Let the loop turn once."""
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()


async def test_long_calls_take_turns_with_short_ones() -> None:
    gate = Gate()
    batcher = Batcher(gate.send, batch_size=4, max_in_flight=1)
    long = asyncio.create_task(batcher.submit(texts_of("l", 8)))
    await gate.sent(1)
    short = asyncio.create_task(batcher.submit(["s"]))
    await turn()
    gate.open.set()
    await asyncio.gather(long, short)
    assert gate.batches == [["l0", "l1", "l2", "l3"], ["l4", "s", "l5", "l6"], ["l7"]]


async def test_a_request_is_bounded_by_characters() -> None:
    gate = Gate()
    gate.open.set()
    await Batcher(gate.send, batch_chars=10).submit(["x" * 6, "y" * 6, "z" * 40, "a", "b"])
    assert [[len(text) for text in batch] for batch in gate.batches] == [[6], [6], [40], [1, 1]]


async def test_background_work_leaves_room_for_who_is_waiting() -> None:
    gate = Gate()
    batcher = Batcher(gate.send, batch_size=2, max_in_flight=4)
    bulk = asyncio.create_task(batcher.submit(texts_of("bulk", 20), "background"))
    await gate.sent(2)
    query = asyncio.create_task(batcher.submit(["query"]))
    await gate.sent(3)
    assert gate.batches[2] == ["query"]
    assert len(gate.batches) == 3
    gate.open.set()
    await asyncio.gather(bulk, query)


async def test_requests_in_flight_are_bounded() -> None:
    gate = Gate()
    batcher = Batcher(gate.send, batch_size=1, max_in_flight=3)
    call = asyncio.create_task(batcher.submit(texts_of("t", 9)))
    await gate.sent(3)
    await turn()
    assert len(gate.batches) == 3
    gate.open.set()
    assert len(await call) == 9


async def test_a_cancelled_caller_cancels_no_request_and_sends_nothing_more() -> None:
    gate = Gate()
    batcher = Batcher(gate.send, batch_size=2, max_in_flight=1)
    leaving = asyncio.create_task(batcher.submit(texts_of("leaving", 9)))
    await turn()
    staying = asyncio.create_task(batcher.submit(["staying"]))
    await gate.sent(1)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    gate.open.set()
    assert await staying == [as_vector("staying")]
    assert gate.batches == [["leaving0", "leaving1"], ["staying"]]


async def test_a_neighbour_of_a_cancelled_caller_in_the_same_request_gets_its_answer() -> None:
    gate = Gate()
    batcher = Batcher(gate.send)
    leaving = asyncio.create_task(batcher.submit(["leaving"]))
    staying = asyncio.create_task(batcher.submit(["staying"]))
    await gate.sent(1)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    gate.open.set()
    assert await staying == [as_vector("staying")]
    assert gate.batches == [["leaving", "staying"]]


async def test_a_bad_text_is_its_callers_alone() -> None:
    gate = Gate()
    gate.open.set()
    batcher = Batcher(gate.send)
    bad, good = await asyncio.gather(batcher.submit(["BAD", "x"]), batcher.submit(["y"]))
    assert isinstance(bad[0], TextFault)
    assert bad[1] == as_vector("x")
    assert good == [as_vector("y")]


async def test_a_fault_of_the_endpoint_fails_who_was_in_the_request_and_only_those() -> None:
    gate = Gate()
    batcher = Batcher(gate.send, max_in_flight=1)
    gate.fault = EndpointUnavailable("down")
    together = [asyncio.create_task(batcher.submit([name])) for name in "ab"]
    await gate.sent(1)
    later = asyncio.create_task(batcher.submit(["later"]))
    await turn()
    gate.open.set()
    for task in together:
        with pytest.raises(EndpointUnavailable):
            await task
    assert await later == [as_vector("later")]


async def test_a_failed_call_sends_the_rest_of_its_texts_no_more() -> None:
    gate = Gate()
    gate.open.set()
    gate.fault = EndpointUnavailable("down")
    with pytest.raises(EndpointUnavailable):
        await Batcher(gate.send, batch_size=1, max_in_flight=1).submit(texts_of("t", 50))
    assert len(gate.batches) == 1


async def test_closing_fails_what_is_out_and_what_waits() -> None:
    gate = Gate()
    batcher = Batcher(gate.send, batch_size=1, max_in_flight=1)
    calls = [asyncio.create_task(batcher.submit([name])) for name in "ab"]
    await gate.sent(1)
    await batcher.aclose()
    for call in calls:
        with pytest.raises(EndpointUnavailable, match="shutting down"):
            await call
