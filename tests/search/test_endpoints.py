"""Endpoints that fail: the other channels answer within the budget and say so (invariant 13)."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from memory_plane.plane.engine import Engine
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import (
    BadNumber,
    Body,
    DuplicateIndex,
    Fault,
    HtmlPage,
    MissingIndex,
    Redirect,
    Reset,
    ShuffledIndex,
    Status,
    WrongCount,
    WrongDims,
    ZeroVector,
)
from tests.fixtures.database import settings_for
from tests.search.world import World

FAULTS: list[Fault] = [
    Status(500),
    Status(503),
    Status(429, retry_after="30"),
    Status(401),
    Status(404),
    HtmlPage(),
    Body("not json"),
    Body("{}"),
    Redirect(),
    Reset(),
    WrongCount(-1),
    WrongCount(1),
    WrongDims(3),
    BadNumber("nan"),
    BadNumber("inf"),
    BadNumber("string"),
    ZeroVector(),
    DuplicateIndex(),
    MissingIndex(),
]
RERANK_FAULTS: list[Fault] = [
    Status(500),
    Status(429, retry_after="30"),
    HtmlPage(),
    Body("[]"),
    Redirect(),
    Reset(),
    WrongCount(-1),
    WrongCount(1),
    BadNumber("nan"),
    BadNumber("null"),
    DuplicateIndex(),
]
BUDGET_MS = 1_000


@pytest.fixture
async def endpoint() -> AsyncIterator[FakeEndpoint]:
    """One of its own for each test: what a breaker has learnt of one must not decide another."""
    async with FakeEndpoint(dims=64) as opened:
        yield opened


@pytest.fixture
async def plain(module_database: str, endpoint: FakeEndpoint) -> AsyncIterator[World]:
    settings = settings_for(
        module_database,
        embed_base_url=endpoint.url,
        embed_model="fake",
        embed_timeout_ms=10_000,
        search_deadline_ms=BUDGET_MS,
    )
    async with Engine.open(settings) as engine:
        world = World(engine, f"t-{uuid4().hex[:12]}")
        await world.allow("ann")
        await world.add("The reactor was cooled with liquid sodium.", title="reactor")
        await world.add("Bread rises in a warm kitchen.", title="bread")
        yield world


@pytest.fixture
async def reranking(module_database: str, endpoint: FakeEndpoint) -> AsyncIterator[World]:
    settings = settings_for(
        module_database,
        embed_base_url=endpoint.url,
        embed_model="fake",
        rerank_base_url=endpoint.url,
        rerank_model="bge-reranker-base",
        rerank_timeout_ms=10_000,
        search_deadline_ms=BUDGET_MS,
    )
    async with Engine.open(settings) as engine:
        world = World(engine, f"t-{uuid4().hex[:12]}")
        await world.allow("ann")
        yield world


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
async def test_inv_13_a_broken_embedder_leaves_the_lexical_answer(
    plain: World, endpoint: FakeEndpoint, fault: Fault
) -> None:
    endpoint.fail(fault, on="embed")
    response = await plain.search("liquid sodium reactor")
    assert [item.title for item in response.items] == ["reactor"]
    assert response.degraded == ["dense_unavailable"]


async def test_inv_13_a_hanging_embedder_costs_its_share_and_then_nothing(plain: World, endpoint: FakeEndpoint) -> None:
    hold = endpoint.hold(on="embed")
    loop = asyncio.get_running_loop()
    for number in range(3):
        began = loop.time()
        response = await plain.search(f"sodium {number}")
        assert response.degraded == ["dense_unavailable"]
        assert loop.time() - began < BUDGET_MS / 1000
    asked = hold.held
    for number in range(5):
        response = await plain.search(f"reactor {number}")
        assert response.degraded == ["dense_unavailable"]
    assert hold.held == asked, "an open breaker asks nothing"


async def test_inv_13_an_embedder_that_is_gone_and_comes_back(plain: World, endpoint: FakeEndpoint) -> None:
    await endpoint.stop()
    assert (await plain.search("sodium")).degraded == ["dense_unavailable"]
    await endpoint.start(endpoint.port)
    assert (await plain.search("liquid")).degraded is None


async def test_an_embedder_that_answers_in_another_order_does_no_harm(plain: World, endpoint: FakeEndpoint) -> None:
    endpoint.fail(ShuffledIndex(), on="embed")
    assert (await plain.search("liquid sodium")).degraded is None


async def test_no_connection_is_held_while_an_endpoint_is_waited_for(plain: World, endpoint: FakeEndpoint) -> None:
    hold = endpoint.hold(on="embed")
    search = asyncio.create_task(plain.search("liquid sodium"))
    await hold.reached(1)
    pool = plain.engine.pool
    async with asyncio.timeout(5):
        while pool.get_size() - pool.get_idle_size() > 0:
            await pool.fetchval("SELECT 1")
    hold.release()
    assert (await search).degraded is None


async def test_the_reranker_decides_the_order(reranking: World, endpoint: FakeEndpoint) -> None:
    await reranking.add("apples pears plums cherries and many more fruits of the garden", title="long")
    await reranking.add("apples", title="short")
    response = await reranking.search("apples", explain=True)
    assert response.degraded is None
    assert all("rerank" in (item.explain or {}) for item in response.items)
    (call,) = [call for call in endpoint.calls if call.route == "rerank"]
    assert call.body["query"] == "apples"


@pytest.mark.parametrize("fault", RERANK_FAULTS, ids=repr)
async def test_inv_13_a_broken_reranker_leaves_the_fused_order(
    reranking: World, endpoint: FakeEndpoint, fault: Fault
) -> None:
    for number in range(5):
        await reranking.add(f"apples and pears {number}", title=f"t{number}")
    endpoint.fail(fault, on="rerank")
    response = await reranking.search("apples")
    assert len(response.items) == 5
    assert response.degraded == ["rerank_unavailable"]


async def test_inv_13_a_hanging_reranker_costs_its_share(reranking: World, endpoint: FakeEndpoint) -> None:
    await reranking.add("apples and pears")
    endpoint.hold(on="rerank")
    loop = asyncio.get_running_loop()
    began = loop.time()
    response = await reranking.search("apples")
    assert response.degraded == ["rerank_unavailable"]
    assert len(response.items) == 1
    assert loop.time() - began < BUDGET_MS / 1000


async def test_inv_09_fifty_are_asked_for_and_fifty_come_with_a_reranker(
    reranking: World, endpoint: FakeEndpoint
) -> None:
    for number in range(60):
        await reranking.add(f"apples and pears {number}", title=f"t{number}")
    response = await reranking.search("apples", limit=50)
    assert len(response.items) == 50
    scores = [item.score for item in response.items]
    assert scores == sorted(scores, reverse=True)


async def test_a_long_chunk_is_cut_to_the_rerankers_limit_and_still_judged(
    reranking: World, endpoint: FakeEndpoint
) -> None:
    await reranking.add("apples " + "orchard " * 100)
    response = await reranking.search("apples")
    assert response.degraded is None
    (call,) = [call for call in endpoint.calls if call.route == "rerank"]
    assert all(len(text) <= 1500 for text in call.texts)


async def test_a_query_too_long_for_the_reranker_is_not_reranked(reranking: World, endpoint: FakeEndpoint) -> None:
    await reranking.add("apples and pears")
    response = await reranking.search("apples " + "x" * 1400)
    assert response.degraded == ["rerank_query_too_long"]
    assert len(response.items) == 1
    assert not [call for call in endpoint.calls if call.route == "rerank"]
