"""Filters narrow every channel before fusion; [] equals absent (invariant 12)."""

from collections.abc import Awaitable, Callable

import pytest

from memory_plane.contracts.errors import Forbidden, Invalid, NotFound
from tests.search.world import World


@pytest.fixture
async def library(world: World) -> World:
    await world.add(
        "The red lighthouse stands on the cliff.",
        title="one",
        kind="note",
        adapter="mail",
        external_ref="mail:1",
        attributes={"price": 10, "colour": "red"},
    )
    await world.add(
        "A lighthouse keeper wrote letters.",
        title="two",
        kind="letter",
        adapter="http",
        external_ref="r2",
        attributes={"price": "N/A"},
    )
    await world.add(
        "Blue lighthouse paint.",
        title="three",
        kind="note",
        adapter="http",
        external_ref="r3",
        attributes={"price": 10.0, "colour": "blue"},
        entities=[{"kind": "person", "identifier": "keeper"}],
    )
    return world


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, {"one", "two", "three"}),
        ({"kinds": [], "adapters": [], "entity_ids": [], "sources": [], "attributes": {}}, {"one", "two", "three"}),
        ({"kinds": ["letter"]}, {"two"}),
        ({"kinds": ["letter", "note"]}, {"one", "two", "three"}),
        ({"kinds": ["nothing"]}, set()),
        ({"adapters": ["mail"]}, {"one"}),
        ({"attributes": {"price": 10}}, {"one", "three"}),
        ({"attributes": {"price": "N/A"}}, {"two"}),
        ({"attributes": {"price": "10"}}, set()),
        ({"attributes": {"price": 10, "colour": "blue"}}, {"three"}),
        ({"attributes": {"absent": None}}, set()),
        ({"sources": ["local"]}, {"one", "two", "three"}),
        ({"kinds": ["note"], "adapters": ["http"]}, {"three"}),
    ],
)
async def test_inv_12_filters_narrow_every_channel(
    library: World, filters: dict[str, object], expected: set[str]
) -> None:
    assert set(await library.titles("lighthouse", **filters)) == expected
    # Far from every text in words, so that only the dense channel brings anything.
    assert set(await library.titles("qqqq", **filters)) == expected


async def test_inv_12_entities_narrow(library: World) -> None:
    entity = await library.engine.pool.fetchval(
        "SELECT id FROM memory.entity WHERE tenant_id = $1 AND identifier = 'keeper'", library.tenant
    )
    assert await library.titles("lighthouse", entity_ids=[entity]) == ["three"]
    assert await library.titles("lighthouse", entity_ids=["kent_unknown"]) == []
    assert await library.titles("", entity_ids=[entity]) == ["three"]


async def test_a_blank_query_with_a_filter_is_in_order_of_recency(library: World) -> None:
    response = await library.search("  ", kinds=["note", "letter"])
    assert [item.title for item in response.items] == ["three", "two", "one"]
    assert response.degraded is None
    await library.add(
        "The red lighthouse stands on the cliff.",
        title="one",
        kind="note",
        adapter="mail",
        external_ref="mail:1",
        attributes={"price": 10, "colour": "red"},
    )
    assert await library.titles("", kinds=["note", "letter"]) == ["one", "three", "two"]
    assert await library.titles("", kinds=["note"], limit=1) == ["one"]


async def _refused(ask: Callable[[], Awaitable[object]], kind: type[Exception], code: str) -> None:
    with pytest.raises(kind) as refusal:
        await ask()
    assert getattr(refusal.value, "code", None) == code


async def test_what_cannot_be_asked_is_refused_with_a_sentence(library: World) -> None:
    await _refused(lambda: library.search(""), Invalid, "blank")
    await _refused(lambda: library.search("", adapters=["http"]), Invalid, "blank")
    await _refused(lambda: library.search("x" * 4097), Invalid, "query_too_long")
    await _refused(lambda: library.search("x", sources=["tickets"]), Invalid, "unknown_source")
    await _refused(lambda: library.search("x", generation="kgen_unknown"), NotFound, "not_found")
    with pytest.raises(Invalid):
        await library.search("x", attributes={"a": {"nested": 1}})


async def test_operators_alone_name_a_generation_or_ask_why(library: World) -> None:
    from memory_plane.contracts.enums import Verb

    await library.allow("bob", Verb.SEARCH)
    await _refused(lambda: library.search("x", principal="bob", explain=True), Forbidden, "capability_missing")
    generation = await library.engine.pool.fetchval(
        "SELECT id FROM memory.generation WHERE tenant_id = $1 AND state = 'live'", library.tenant
    )
    await _refused(lambda: library.search("x", principal="bob", generation=generation), Forbidden, "capability_missing")
    response = await library.search("lighthouse", generation=generation, explain=True)
    assert response.explain is not None and response.explain["generation"] == generation
    first = response.items[0].explain
    assert first is not None and first["lexical"]["rank"] == 1
    assert {"fused", "boosts", "dense"} <= first.keys()
    with pytest.raises(Forbidden):
        await library.search("x", principal="carol")


async def test_inv_11_nothing_of_another_tenant_is_reachable(library: World, hybrid_engine: object) -> None:
    other = World(library.engine, f"{library.tenant}-other")
    await other.allow("ann")
    await other.add("A lighthouse of theirs.", title="theirs", kind="note")
    pool = library.engine.pool
    theirs = await pool.fetchval("SELECT id FROM memory.generation WHERE tenant_id = $1", library.tenant)
    entity = await pool.fetchval("SELECT id FROM memory.entity WHERE tenant_id = $1", library.tenant)
    assert await other.titles("lighthouse") == ["theirs"]
    assert await other.titles("lighthouse", entity_ids=[entity]) == []
    await _refused(lambda: other.search("lighthouse", generation=theirs), NotFound, "not_found")
