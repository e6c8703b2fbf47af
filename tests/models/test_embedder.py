"""What the plane embeds with, against a real HTTP endpoint that fails on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import numpy as np
import pytest

from memory_plane.models.breaker import Breaker
from memory_plane.models.embed import EmbedClient
from memory_plane.models.embedder import Embedder
from memory_plane.models.endpoint import Endpoint
from memory_plane.models.errors import (
    BadReply,
    CircuitOpen,
    EndpointFault,
    EndpointRejected,
    EndpointTimeout,
    EndpointUnavailable,
)
from memory_plane.models.isolate import Outcome, TextFault
from memory_plane.models.pool import ModelPool
from memory_plane.models.query_cache import QueryCache
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import BadNumber, Fault, HtmlPage, Poison, Redirect, Status, WrongCount, WrongDims
from tests.models.conftest import DIMS, Clock

# A failing endpoint answers at once; only a hanging one uses this up.
SOON = 0.2
LONG = 20.0


def near(outcome: Outcome, vector: list[float]) -> bool:
    return not isinstance(outcome, TextFault) and np.allclose(outcome, vector, atol=1e-6)


@pytest.fixture
async def embedder(fake: FakeEndpoint, http: httpx.AsyncClient, clock: Clock) -> AsyncIterator[Embedder]:
    client = EmbedClient(http, Endpoint(fake.url, "fake", "openai", timeout=LONG), DIMS)
    embedder = Embedder(
        client,
        QueryCache(clock=clock),
        reachable=Breaker("fake", clock=clock),
        in_time=Breaker("fake", clock=clock),
    )
    yield embedder
    fake.heal()
    await embedder.aclose()


async def test_a_query_is_asked_for_once(fake: FakeEndpoint, embedder: Embedder) -> None:
    first = await embedder.embed_query("red fox", within=LONG)
    again = await embedder.embed_query("red fox", within=LONG)
    assert near(first, fake.vector("red fox"))
    assert again is first
    assert fake.embedded == {"red fox": 1}


async def test_concurrent_adds_and_queries_share_a_request(fake: FakeEndpoint, embedder: Embedder) -> None:
    query = asyncio.create_task(embedder.embed_query("q", within=LONG))
    adds = [[f"add {n}", f"more {n}"] for n in range(8)]
    answers = await asyncio.gather(*(embedder.embed_texts(texts, within=LONG) for texts in adds))
    assert near(await query, fake.vector("q"))
    for texts, outcomes in zip(adds, answers, strict=True):
        assert all(near(outcome, fake.vector(text)) for outcome, text in zip(outcomes, texts, strict=True))
    assert len(fake.calls) == 1


async def test_a_poisoned_neighbour_spoils_no_query(fake: FakeEndpoint, embedder: Embedder) -> None:
    fake.fail(Poison("BAD"))
    query, (bad, good) = await asyncio.gather(
        embedder.embed_query("q", within=LONG), embedder.embed_texts(["BAD", "x"], within=LONG)
    )
    assert near(query, fake.vector("q"))
    assert isinstance(bad, TextFault)
    assert not isinstance(good, TextFault)


async def test_a_poisoned_query_is_rejected_and_opens_no_circuit(fake: FakeEndpoint, embedder: Embedder) -> None:
    fake.fail(Poison("BAD"))
    for _ in range(5):
        with pytest.raises(EndpointRejected):
            await embedder.embed_query("BAD", within=LONG)
    assert embedder.reachable.state == embedder.in_time.state == "closed"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Status(500), EndpointUnavailable),
        (Status(503), EndpointUnavailable),
        (Status(429, retry_after="30"), EndpointUnavailable),
        (HtmlPage(), EndpointUnavailable),
        (Redirect(), EndpointUnavailable),
        (WrongCount(-1), BadReply),
        (WrongDims(3), BadReply),
        (BadNumber("nan"), BadReply),
    ],
    ids=str,
)
async def test_inv_13_a_failing_endpoint_is_soon_left_alone_and_found_again(
    fake: FakeEndpoint, embedder: Embedder, clock: Clock, fault: Fault, kind: type[EndpointFault]
) -> None:
    fake.fail(fault)
    with pytest.raises(kind):
        await embedder.embed_query("first", within=LONG)
    for n in range(20):
        with pytest.raises(EndpointFault):
            await embedder.embed_query(f"q{n}", within=LONG)
    assert len(fake.calls) <= 6, "three requests, each with at most one control"
    fake.heal()
    clock.now += 31.0
    assert near(await embedder.embed_query("q0", within=LONG), fake.vector("q0"))


async def test_inv_13_an_endpoint_that_is_down_is_found_again_as_soon_as_it_is_asked(
    fake: FakeEndpoint, embedder: Embedder, clock: Clock
) -> None:
    port = fake.port
    await fake.stop()
    for n in range(50):
        with pytest.raises(EndpointUnavailable):
            await embedder.embed_query(f"q{n}", within=LONG)
        clock.now += 1.0
    await fake.start(port)
    clock.now += embedder.reachable.retry_in
    assert near(await embedder.embed_query("back", within=LONG), fake.vector("back"))


async def test_inv_13_a_hanging_endpoint_costs_three_callers_their_share_and_no_more(
    fake: FakeEndpoint, embedder: Embedder, clock: Clock
) -> None:
    hold = fake.hold()
    for n in range(3):
        with pytest.raises(EndpointTimeout):
            await embedder.embed_query(f"q{n}", within=SOON)
    for n in range(20):
        # Within hours: were the call let through, this would wait until the test's own timeout.
        with pytest.raises(EndpointUnavailable, match="left alone"):
            await embedder.embed_query(f"r{n}", within=3600.0)
    with pytest.raises(EndpointUnavailable, match="left alone"):
        await embedder.embed_texts(["inline add"], within=3600.0)
    hold.release()
    fake.heal()
    clock.now += 1.0
    assert len(await embedder.embed_query("back", within=LONG)) == DIMS


async def test_retry_after_reaches_background_work_and_costs_one_call(fake: FakeEndpoint, embedder: Embedder) -> None:
    fake.fail(Status(429, retry_after="30"))
    waits = []
    for _ in range(10):
        with pytest.raises(EndpointUnavailable) as raised:
            await embedder.embed_texts(["a", "b"])
        waits.append(raised.value.retry_after)
    assert waits == [30.0] * 10
    assert len(fake.calls) == 1


async def test_refusals_of_an_open_circuit_say_nothing_about_being_in_time(
    fake: FakeEndpoint, embedder: Embedder, clock: Clock
) -> None:
    fake.fail(Status(429, retry_after="30"), times=1)
    with pytest.raises(EndpointUnavailable):
        await embedder.embed_texts(["bulk"])
    for n in range(20):
        with pytest.raises(CircuitOpen):
            await embedder.embed_query(f"q{n}", within=LONG)
    assert embedder.in_time.state == "closed"
    clock.now += 30.0
    assert near(await embedder.embed_query("q", within=LONG), fake.vector("q"))


async def test_a_slow_endpoint_is_refused_to_searches_while_bulk_work_goes_on(
    fake: FakeEndpoint, embedder: Embedder
) -> None:
    hold = fake.hold()
    bulk = asyncio.create_task(embedder.embed_texts(["bulk"]))
    await hold.reached(1)
    for n in range(3):
        with pytest.raises(EndpointTimeout):
            await embedder.embed_query(f"q{n}", within=SOON)
    assert embedder.in_time.state == "open"
    assert embedder.reachable.state == "closed"
    hold.release()
    assert len(await bulk) == 1


async def test_the_pool_shares_what_belongs_together(fake: FakeEndpoint) -> None:
    async with ModelPool() as pool:
        here = pool.embedder(Endpoint(fake.url, "m", "openai"), DIMS)
        assert pool.embedder(Endpoint(fake.url + "/v1/", "m", "openai"), DIMS) is here
        assert pool.embedder(Endpoint(fake.url, "n", "openai"), DIMS) is not here
        assert len(await here.embed_query("q", within=LONG)) == DIMS
        reranker = pool.reranker(Endpoint(fake.url, "m", "tei"))
        assert pool.reranker(Endpoint(fake.url, "m", "tei")) is reranker
        assert await reranker.rerank("a", ["a"], within=LONG) == [1.0]
        assert await pool.chat(Endpoint(fake.url, "m", "openai")).complete_json("s", "u", {}) == {}
