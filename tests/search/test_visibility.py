"""Full pages of what the caller may see, and nothing else (invariants 9, 10)."""

from collections.abc import Mapping
from typing import Any

import pytest

from memory_plane.contracts.enums import GrantEffect, Verb
from memory_plane.contracts.wire import SearchResponse
from memory_plane.plane import search_retrieve
from tests.search.world import World


async def reader(world: World, name: str = "bob", *tags: str) -> None:
    await world.allow(name, Verb.SEARCH, Verb.ADD)
    for tag in tags:
        await world.grant(name, tag)


async def test_inv_09_sixty_better_matches_of_another_leave_his_own_found(world: World) -> None:
    await reader(world)
    for number in range(60):
        await world.add(f"the quarterly budget review {number}, quarterly budget review", principal="ann")
    own = await world.add("a note on the budget", principal="bob")
    assert await world.found("quarterly budget review", principal="bob") == [own.document_id]


@pytest.mark.parametrize("small_set", [0, 500])
async def test_inv_09_a_page_is_full_of_what_is_visible(
    world: World, monkeypatch: pytest.MonkeyPatch, small_set: int
) -> None:
    """With and without the small set: by exact reading, and by going on in channels full of hidden documents."""
    monkeypatch.setattr(search_retrieve, "SMALL_SET", small_set)
    await reader(world, "bob", "memory.space:eng")
    visible = set()
    for number in range(120):
        shared = number % 6 == 5
        words = "alpha" if shared else "alpha beta gamma"
        tags = ["memory.space:eng"] if shared else []
        added = await world.add(f"{words} {number}", access_tags=tags)
        if shared:
            visible.add(added.document_id)
    assert len(visible) == 20
    for limit in (1, 8, 20, 50):
        found = await world.found("alpha beta gamma", principal="bob", limit=limit)
        assert len(found) == min(limit, 20)
        assert set(found) <= visible


async def test_inv_09_documents_that_only_the_authority_hides_do_not_shorten_a_page(world: World) -> None:
    """A deny on one of a document's tags is not in the SQL: these rows come, are refused, and the channel goes on."""
    await world.allow("bob", Verb.SEARCH)
    await world.grant("bob", "memory.space:*")
    await world.grant("bob", "memory.space:secret", effect=GrantEffect.DENY)
    for number in range(110):
        await world.add(f"alpha beta gamma {number}", access_tags=["memory.space:secret"])
    open_ones = [await world.add(f"alpha {number}", access_tags=["memory.space:open"]) for number in range(12)]
    response = await world.search("alpha beta gamma", principal="bob", limit=10)
    assert response.degraded is None
    found = [item.document_id for item in response.items]
    assert len(found) == 10
    assert set(found) <= {added.document_id for added in open_ones}


def shown(response: SearchResponse) -> Mapping[str, Any]:
    """All that a caller is told, without the ids and times that differ between two worlds."""
    return {
        "evidence": response.evidence,
        "degraded": response.degraded,
        "items": [
            (
                item.title,
                item.snippet,
                round(item.score, 9),
                item.attribution
                and (item.attribution.supports, item.attribution.contradicts, item.attribution.channels),
                item.attribution and len(item.attribution.derived_from),
            )
            for item in response.items
        ],
    }


QUERIES = ["alpha beta", "beta gamma delta", '"alpha beta"', "alpha -gamma", "delta"]


async def build(world: World, *, hidden: bool) -> None:
    """The same documents of ann's that bob sees, with or without hidden ones before, between and after them."""
    await reader(world, "bob", "memory.space:eng")
    for number in range(12):
        secrets = []
        if hidden:
            secrets = [await world.add(f"alpha beta gamma delta {number}", title="secret", principal="ann")]
        topic = ("alpha beta", "beta gamma", "gamma delta", "alpha gamma")[number % 4]
        added = await world.add(
            f"{topic} number {number}",
            title=f"open {number}",
            principal="ann",
            access_tags=["memory.space:eng"],
            temporal_class="state",
        )
        for secret in secrets:
            await world.add("they say so too", title="secret witness", supports=[added.version_id])
            await world.add("alpha beta", title="secret claim", derived_from=[added.version_id, secret.version_id])


async def test_inv_10_hidden_documents_change_nothing_that_is_told(world: World) -> None:
    """Metamorphic: two tenants that differ only in what bob may not see; term counts are those of the query alone
    and are held fixed by giving both tenants the same statistics."""
    with_hidden, without = World(world.engine, f"{world.tenant}-h"), World(world.engine, f"{world.tenant}-o")
    await build(with_hidden, hidden=True)
    await build(without, hidden=False)
    await same_statistics(with_hidden, without)
    for query in QUERIES:
        for limit in (1, 5, 50):
            left = await with_hidden.search(query, principal="bob", limit=limit)
            right = await without.search(query, principal="bob", limit=limit)
            assert shown(left) == shown(right), query
    recent = [await each.titles("", principal="bob", kinds=["note"], limit=50) for each in (with_hidden, without)]
    assert recent[0] == recent[1]


async def same_statistics(*worlds: World) -> None:
    for each in worlds:
        generation = await each.engine.pool.fetchval(
            "SELECT id FROM memory.generation WHERE tenant_id = $1 AND state = 'live'", each.tenant
        )
        await each.engine.pool.execute(
            """
            INSERT INTO memory.lexical_corpus (tenant_id, generation_id, chunk_count, total_length, through_position)
            VALUES ($1, $2, 1000, 5000, 1000000)
            """,
            each.tenant,
            generation,
        )
        await each.engine.pool.execute(
            """
            INSERT INTO memory.lexical_term (tenant_id, generation_id, term_hash, chunk_count)
            SELECT $1, $2, hashtextextended(term, 0), 100 FROM unnest(ARRAY['alpha', 'beta', 'gamma', 'delta']) AS term
            """,
            each.tenant,
            generation,
        )


async def test_lineage_and_corroboration_count_only_what_the_caller_sees(world: World) -> None:
    await reader(world, "bob", "memory.space:eng")
    source = await world.add("The bridge opened in May.", access_tags=["memory.space:eng"])
    await world.add("Yes, in May.", title="open", access_tags=["memory.space:eng"], supports=[source.version_id])
    await world.add("Yes indeed.", title="hidden", supports=[source.version_id])
    await world.add("No, in June.", title="against", contradicts=[source.version_id])
    mine = (await world.search("bridge opened May")).items[0].attribution
    his = (await world.search("bridge opened May", principal="bob")).items[0].attribution
    assert mine is not None and his is not None
    assert (mine.supports, mine.contradicts) == (2, 1)
    assert (his.supports, his.contradicts) == (1, 0)


async def test_a_claim_is_found_by_those_who_see_all_its_sources(world: World) -> None:
    await reader(world, "bob", "memory.space:eng")
    shared = await world.add("Project heron starts in May.", access_tags=["memory.space:eng"])
    secret = await world.add("Project heron costs a million.")
    open_claim = await world.add(
        "Heron: begins in spring.", access_tags=["memory.space:eng"], derived_from=[shared.version_id]
    )
    closed = await world.add("Heron: dear.", derived_from=[shared.version_id, secret.version_id])
    his = await world.search("heron", principal="bob", limit=50)
    assert {item.document_id for item in his.items} == {shared.document_id, open_claim.document_id}
    claim = next(item for item in his.items if item.document_id == open_claim.document_id)
    assert claim.attribution is not None and claim.attribution.derived_from == [shared.version_id]
    assert closed.document_id in await world.found("heron", limit=50)


async def test_a_narrowed_tag_hides_at_the_next_search(world: World) -> None:
    await reader(world, "bob", "memory.space:eng")
    fields: dict[str, Any] = {"external_ref": "x:1", "access_tags": ["memory.space:eng"]}
    added = await world.add("alpha beta", **fields)
    assert await world.found("alpha", principal="bob") == [added.document_id]
    await world.add("alpha beta", **{**fields, "access_tags": []})
    assert await world.found("alpha", principal="bob") == []
