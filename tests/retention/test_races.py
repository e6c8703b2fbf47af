"""Forgetting and purging while others capture, distil and embed: no derived row survives, nobody sees a deadlock."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from memory_plane.contracts.errors import Invalid, NotFound
from memory_plane.core.access_tags import owner_tag
from memory_plane.plane.captured import Captured
from memory_plane.store.database import connection
from memory_plane.store.locks import lock_documents
from tests.access.seed import TENANT
from tests.eventually import eventually
from tests.retention.conftest import Plane

_BROKEN = """
SELECT 'content of a tombstone' AS what, v.id FROM memory.version v
JOIN memory.chunk c ON c.version_id = v.id WHERE v.status = 'tombstoned' AND c.text <> '[redacted]'
UNION ALL
SELECT 'derivation of a tombstone', v.id FROM memory.version v
JOIN memory.derivation d ON d.version_id = v.id WHERE v.status = 'tombstoned'
UNION ALL
SELECT 'title of a tombstone', id FROM memory.version WHERE status = 'tombstoned' AND title <> '[redacted]'
UNION ALL
SELECT 'payload of a tombstone', r.id FROM memory.raw_capture r WHERE r.source_hash NOT LIKE 'forgotten:%'
    AND NOT EXISTS (SELECT FROM memory.version v WHERE v.raw_capture_id = r.id AND v.status <> 'tombstoned')
UNION ALL
SELECT 'redacted payload of a living version', r.id FROM memory.raw_capture r
JOIN memory.version v ON v.raw_capture_id = r.id
WHERE r.raw_text = '[redacted]' AND v.status <> 'tombstoned'
UNION ALL
SELECT 'claim upon what is gone', e.from_id FROM memory.edge e JOIN memory.version claim ON claim.id = e.from_id
LEFT JOIN memory.version source ON source.id = e.to_id
WHERE e.rel = 'derived_from' AND claim.status <> 'tombstoned' AND (source.id IS NULL OR source.status = 'tombstoned')
UNION ALL
SELECT 'entity that nothing names', n.id FROM memory.entity n
WHERE NOT EXISTS (SELECT FROM memory.edge e WHERE e.to_id = n.id)
UNION ALL
SELECT 'edge to no entity', e.id FROM memory.edge e LEFT JOIN memory.entity n ON n.id = e.to_id
WHERE e.to_type = 'entity' AND n.id IS NULL
"""


async def nothing_is_broken(plane: Plane) -> None:
    async with connection(plane.pool) as conn:
        assert await conn.fetch(_BROKEN) == []
        tables = [row["table_name"] for row in await conn.fetch("SELECT table_name FROM memory.embed_model")]
        for table in tables:
            left = await conn.fetchval(
                f"SELECT count(*) FROM memory.{table} e JOIN memory.version v ON v.id = e.version_id "
                "WHERE v.status = 'tombstoned'"
            )
            assert left == 0


async def waiting_for_a_lock(plane: Plane, count: int) -> None:
    async def enough() -> bool:
        async with connection(plane.pool) as conn:
            waiting: int = await conn.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
        return waiting >= count

    await eventually(enough, what=f"{count} waiting for a lock")


async def test_inv_20_an_embed_in_flight_leaves_nothing_of_a_forgotten_document(plane: Plane) -> None:
    forgotten, purged, kept = await plane.add(text="one"), await plane.add(text="two"), await plane.add(text="three")
    await plane.embed(await plane.add(text="so that the model is known, and the next request is for these"))
    hold = plane.fake.hold(on="embed")
    embedding = asyncio.create_task(plane.embed(forgotten, purged, kept))
    await hold.reached()
    alice = await plane.sight()
    await plane.retention.forget(alice, forgotten.document_id)
    await plane.retention.purge(alice, purged.document_id)
    hold.release()
    await embedding
    await nothing_is_broken(plane)
    async with connection(plane.pool) as conn:
        table = await conn.fetchval("SELECT table_name FROM memory.embed_model")
        versions = [row["version_id"] for row in await conn.fetch(f"SELECT version_id FROM memory.{table}")]
    assert kept.version_id in versions and not {forgotten.version_id, purged.version_id} & set(versions)


async def test_a_capture_that_waits_for_a_forget_comes_after_it(plane: Plane) -> None:
    first = await plane.add(external_ref="one", text="first")
    await plane.add(external_ref="two")
    alice = await plane.sight()
    async with connection(plane.pool) as conn:
        holding = conn.transaction()
        await holding.start()
        await lock_documents(conn, TENANT, [first.document_id])
        forgetting = asyncio.create_task(plane.retention.forget(alice, first.document_id))
        await waiting_for_a_lock(plane, 1)
        adding = asyncio.create_task(plane.add(external_ref="one", text="second"))
        await waiting_for_a_lock(plane, 2)
        await holding.commit()
    await forgetting
    await adding
    await nothing_is_broken(plane)
    assert await plane.statuses(first.document_id) == ["tombstoned", "active"]


async def test_a_claim_that_slips_in_while_its_source_is_being_locked_goes_too(plane: Plane) -> None:
    """The claim commits between the forget's first look and its lock: the closure has grown, and is locked anew."""
    await plane.grant("dora", owner_tag("alice"))
    source = await plane.add()
    async with connection(plane.pool) as conn:
        holding = conn.transaction()
        await holding.start()
        # As a capture of a claim does: the source is kept from changing while the claim is written.
        await conn.execute("SELECT FROM memory.document WHERE id = $1 FOR SHARE", source.document_id)
        forgetting = asyncio.create_task(plane.retention.forget(await plane.sight(), source.document_id))
        await waiting_for_a_lock(plane, 1)
        await holding.rollback()
        answer = await forgetting
    assert answer.derived_forgotten == 0

    source = await plane.add()
    async with connection(plane.pool) as conn:
        holding = conn.transaction()
        await holding.start()
        await lock_documents(conn, TENANT, [source.document_id])
        claiming = asyncio.create_task(plane.add("dora", derived_from=[source.version_id]))
        await waiting_for_a_lock(plane, 1)
        forgetting = asyncio.create_task(plane.retention.forget(await plane.sight(), source.document_id))
        await waiting_for_a_lock(plane, 2)
        await holding.commit()
    claim, answer = await claiming, await forgetting
    assert (answer.versions, answer.derived_forgotten) == (1, 1)
    assert await plane.statuses(claim.document_id) == ["tombstoned"]
    await nothing_is_broken(plane)


async def test_inv_24_a_source_forgotten_meanwhile_is_a_skip(plane: Plane) -> None:
    await plane.grant("dora", owner_tag("alice"))
    source = await plane.add()
    async with connection(plane.pool) as conn:
        holding = conn.transaction()
        await holding.start()
        await lock_documents(conn, TENANT, [source.document_id])
        forgetting = asyncio.create_task(plane.retention.forget(await plane.sight(), source.document_id))
        await waiting_for_a_lock(plane, 1)
        claiming = asyncio.create_task(plane.add("dora", derived_from=[source.version_id]))
        await waiting_for_a_lock(plane, 2)
        await holding.commit()
    await forgetting
    try:
        await claiming
        raise AssertionError("the source is gone")
    except Invalid as refused:
        assert refused.code == "source_gone"
    await nothing_is_broken(plane)


async def test_inv_20_everybody_at_once(plane: Plane) -> None:
    """Captures over shared entities, claims upon claims, embeds, forgets and purges of the same documents."""
    await plane.grant("dora", owner_tag("alice"))
    await plane.grant("alice", owner_tag("dora"))
    people = [{"kind": "person", "identifier": f"p{n}"} for n in range(6)]
    sources = [await plane.add(external_ref=f"s{n}", entities=people[n % 3 :: 2]) for n in range(6)]
    claims: list[Captured] = []

    async def tolerant(work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except (Invalid, NotFound) as refused:
            assert refused.code in ("source_gone", "not_found")

    async def claim(n: int) -> None:
        upon = sources[n % 6].version_id if n % 2 or not claims else claims[-1].version_id
        claims.append(
            await plane.add("dora", derived_from=[upon, sources[(n + 1) % 6].version_id], entities=people[n % 6 :])
        )

    async def end(n: int) -> None:
        alice, document = await plane.sight(), sources[n % 6].document_id
        await (plane.retention.purge if n % 5 == 0 else plane.retention.forget)(alice, document)

    for round_ in range(4):
        work: list[Coroutine[Any, Any, None]] = []
        for n in range(6):
            work += [
                tolerant(claim(n)),
                tolerant(plane.add(external_ref=f"s{n}", text=f"{round_} {n}", entities=people[n:] + people[:n:2])),
                tolerant(plane.embed(*sources[n : n + 1], *claims[-2:])),
                tolerant(end(n + round_)) if n < 4 else tolerant(claim(n + 1)),
            ]
        await asyncio.gather(*work)
        await nothing_is_broken(plane)
