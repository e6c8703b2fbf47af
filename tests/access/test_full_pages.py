"""Hidden documents take no place on a page and change nothing of what is answered: list, feed and get."""

from typing import Any

from memory_plane.contracts.errors import NotFound
from memory_plane.core.access_tags import owner_tag
from memory_plane.store.database import connection
from tests.access.seed import TENANT
from tests.retention.conftest import Plane, opened_plane, plane

__all__ = ["opened_plane", "plane"]

TEAM = "memory.space:team"


async def hidden_in_front(plane: Plane, number: int) -> None:
    """So many documents of somebody else's, seen last and captured first, each with its place in the feed."""
    async with connection(plane.pool) as conn, conn.transaction():
        await conn.execute(
            """
            INSERT INTO memory.document (id, tenant_id, adapter, external_ref, title, kind, access_tags,
                                         created_by_principal_id, created_at, last_seen_at)
            SELECT 'kdoc_h' || n, $1, 'http', 'h' || n, 'hidden', 'note', ARRAY['memory.owner:zoe'], 'zoe', now(),
                   now() + interval '1 hour'
            FROM generate_series(1, $2) n
            """,
            TENANT,
            number,
        )
        await conn.execute(
            """
            INSERT INTO memory.raw_capture (id, tenant_id, document_id, source_hash, adapter, raw_text, fetched_at)
            SELECT 'kraw_h' || n, $1, 'kdoc_h' || n, 'h' || n, 'http', '{}', now() FROM generate_series(1, $2) n
            """,
            TENANT,
            number,
        )
        await conn.execute(
            """
            INSERT INTO memory.version (id, tenant_id, document_id, version, status, status_at, title, kind,
                content_hash, occurred_at, ingested_at, temporal_class, retention_class, provenance, source_class,
                created_by_principal_id, created_by_kind, authority, raw_capture_id, feed_position)
            SELECT 'kver_h' || n, $1, 'kdoc_h' || n, 1, 'active', now(), 'hidden', 'note', 'h' || n, now(), now(),
                   'event', 'standard', 'stated', 'native', 'zoe', 'human', 0.5, 'kraw_h' || n, n
            FROM generate_series(1, $2) n
            """,
            TENANT,
            number,
        )
        await conn.execute("INSERT INTO memory.tenant_counter VALUES ($1, $2)", TENANT, number)
        await conn.execute("ANALYZE memory.document, memory.version")


async def walk_list(plane: Plane, principal: str, limit: int) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor: str | None = None
    while True:
        page = await plane.engine.library.list(await plane.sight(principal), limit, cursor)
        pages.append([event.document_id for event in page.events])
        cursor = page.next_cursor
        if cursor is None:
            return pages


async def walk_feed(plane: Plane, principal: str, limit: int) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor = 0
    while True:
        page = await plane.engine.feed.entries(await plane.sight(principal), cursor, limit)
        if not page.entries:
            return pages
        pages.append([entry.version_id for entry in page.entries])
        cursor = page.next_cursor


async def test_inv_09_list_and_feed_are_full_behind_twenty_thousand_hidden_ones(plane: Plane) -> None:
    await hidden_in_front(plane, 20_000)
    await plane.grant("bob", TEAM)
    await plane.grant("dora", owner_tag("alice"))
    seen = [await plane.add(access_tags=[TEAM]) for _ in range(12)]
    private = await plane.add()
    # The tags of these say yes and the authority says no: a claim has a source that bob does not see.
    for _ in range(8):
        claim = await plane.add("dora", derived_from=[private.version_id])
        async with connection(plane.pool) as conn:
            await conn.execute(
                "UPDATE memory.document SET access_tags = access_tags || $2 WHERE id = $1", claim.document_id, [TEAM]
            )
    pages = await walk_list(plane, "bob", 5)
    assert [len(page) for page in pages] == [5, 5, 2]
    assert [document for page in pages for document in page] == [each.document_id for each in reversed(seen)]
    pages = await walk_feed(plane, "bob", 5)
    assert [len(page) for page in pages] == [5, 5, 2]
    assert [version for page in pages for version in page] == [each.version_id for each in seen]


async def answers(plane: Plane, documents: list[str]) -> list[Any]:
    """All that bob is answered, without feed positions, which alone may tell that something happened."""
    bob = await plane.sight("bob")
    listed = await plane.engine.library.list(bob, 100, None)
    fed = await plane.engine.feed.entries(bob, 0, 100)
    got: list[Any] = []
    for document in documents:
        try:
            got.append(await plane.engine.library.get(bob, document))
        except NotFound as refusal:
            got.append((refusal.code, refusal.detail))
    return [listed, [entry.model_dump(exclude={"feed_seq"}) for entry in fed.entries], got]


async def test_inv_10_what_cannot_be_seen_changes_nothing_that_is_answered(plane: Plane) -> None:
    await plane.grant("bob", TEAM)
    for creator in ("alice", "bob"):
        await plane.grant("dora", owner_tag(creator))
    mine, shared = await plane.add("bob", text="mine"), await plane.add(access_tags=[TEAM], text="shared")
    hidden = await plane.add(text="hidden", entities=[{"kind": "person", "identifier": "p"}])
    asked = [mine.document_id, shared.document_id, hidden.document_id, "kdoc_unknown"]
    before = await answers(plane, asked)
    assert before[2][2] == before[2][3], "hidden and unknown look the same"

    more = await plane.add(
        text="more hidden", supports=[shared.version_id, hidden.version_id], contradicts=[hidden.version_id]
    )
    claim = await plane.add("dora", derived_from=[hidden.version_id, mine.version_id], text="a hidden claim")
    await plane.add(external_ref="x", text="first")
    await plane.add(external_ref="x", text="second", access_tags=["memory.space:other"])
    assert await answers(plane, asked) == before
    alice = await plane.sight("alice")
    await plane.retention.forget(alice, more.document_id)
    await plane.retention.purge(alice, hidden.document_id)
    assert await plane.statuses(claim.document_id) == ["tombstoned"]
    assert await answers(plane, asked) == before
