"""Who sees a claim: those who see each of its sources, as they are now, and those whom a receipt admits."""

from datetime import UTC, datetime

from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.caller import Caller
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import visible_documents, visible_versions
from memory_plane.store.database import Connection, Pool, connection
from tests.access import seed

TEAM = "memory.space:team"
OPEN = ["memory.owner:alice", TEAM]


def reader(principal: str = "bob", *resources: str, tenant: str = seed.TENANT) -> Visibility:
    return Visibility(
        Caller(tenant, principal), [seed.allow(principal, r) for r in resources or (TEAM,)], datetime.now(UTC)
    )


async def sees(conn: Connection, visibility: Visibility, seeded: seed.Seeded) -> bool:
    by_version = await visible_versions(conn, visibility, [seeded.version_id]) == {seeded.version_id}
    by_document = await visible_documents(conn, visibility, [seeded.document_id]) == {seeded.document_id}
    assert by_version == by_document
    return by_version


async def test_inv_24_a_claim_is_seen_by_readers_of_all_its_sources_only(pool: Pool) -> None:
    async with connection(pool) as conn:
        private = await seed.document(conn, creator="alice")
        shared = await seed.document(conn, creator="alice", tags=OPEN)
        claim = await seed.document(
            conn,
            creator="distiller",
            tags=["memory.owner:distiller", TEAM],
            derived_from=[private.version_id, shared.version_id],
        )
        upon = await seed.document(
            conn, creator="distiller", tags=["memory.owner:distiller", TEAM], derived_from=[claim.version_id]
        )
        assert await sees(conn, reader(), shared)
        assert not await sees(conn, reader(), claim)
        assert not await sees(conn, reader(), upon)
        assert await sees(conn, reader("alice", TEAM), claim)
        assert await sees(conn, reader("alice", TEAM), upon)
        assert not await sees(conn, reader("distiller"), claim), "its creator too must see each source"


async def test_narrowing_a_source_narrows_its_claims_at_once(pool: Pool) -> None:
    async with connection(pool) as conn:
        source = await seed.document(conn, tags=OPEN)
        claim = await seed.document(conn, creator="d", tags=[TEAM], derived_from=[source.version_id])
        upon = await seed.document(conn, creator="d", tags=[TEAM], derived_from=[claim.version_id])
        assert await sees(conn, reader(), upon)
        await conn.execute(
            "UPDATE memory.document SET access_tags = '{memory.owner:alice}' WHERE id = $1", source.document_id
        )
        assert not await sees(conn, reader(), claim)
        assert not await sees(conn, reader(), upon)


async def test_a_tombstoned_or_missing_source_shows_nothing(pool: Pool) -> None:
    async with connection(pool) as conn:
        source = await seed.document(conn, tags=OPEN)
        claim = await seed.document(conn, creator="bob", tags=[TEAM], derived_from=[source.version_id])
        assert await sees(conn, reader(), claim)
        await conn.execute("UPDATE memory.version SET status = 'tombstoned' WHERE id = $1", source.version_id)
        assert not await sees(conn, reader(), claim)
        orphan = await seed.document(conn, creator="bob", tags=[TEAM], derived_from=[new_id(IdKind.VERSION)])
        assert not await sees(conn, reader(), orphan)


async def test_a_receipt_stands_in_for_its_source_and_for_its_tags_only(pool: Pool) -> None:
    async with connection(pool) as conn:
        private, other = await seed.document(conn), await seed.document(conn)
        claim = await seed.document(conn, creator="d", tags=["memory.owner:d", TEAM], derived_from=[private.version_id])
        both = await seed.document(
            conn, creator="d", tags=["memory.owner:d", TEAM], derived_from=[private.version_id, other.version_id]
        )
        await seed.receipt(conn, claim, private.version_id, [TEAM])
        await seed.receipt(conn, both, private.version_id, [TEAM])
        assert await sees(conn, reader(), claim)
        assert not await sees(conn, reader(), both), "the other source's owner has approved nothing"
        assert not await sees(conn, reader("bob", "memory.owner:d"), claim), "not admitted by the approved tag"
        await conn.execute(
            "UPDATE memory.document SET access_tags = '{memory.owner:d}' WHERE id = $1", claim.document_id
        )
        assert not await sees(conn, reader("bob", TEAM, "memory.owner:d"), claim), "the approved tag is gone again"


async def test_each_version_is_judged_by_its_own_sources(pool: Pool) -> None:
    async with connection(pool) as conn:
        private = await seed.document(conn)
        claim = await seed.document(conn, creator="d", tags=[TEAM], derived_from=[private.version_id])
        await conn.execute("UPDATE memory.version SET status = 'superseded' WHERE id = $1", claim.version_id)
        second = await seed.version(conn, claim.document_id, number=2, creator="d")
        assert await visible_versions(conn, reader(), [claim.version_id, second]) == {second}
        assert await visible_documents(conn, reader(), [claim.document_id]) == {claim.document_id}


async def test_what_waits_for_itself_is_never_seen(pool: Pool) -> None:
    async with connection(pool) as conn:
        one = await seed.document(conn, tags=[TEAM])
        two = await seed.document(conn, tags=[TEAM], derived_from=[one.version_id])
        await conn.execute(
            "INSERT INTO memory.edge (id, tenant_id, rel, from_type, from_id, to_type, to_id) "
            "VALUES ('kedg_x', 't', 'derived_from', 'version', $1, 'version', $2)",
            one.version_id,
            two.version_id,
        )
        assert not await sees(conn, reader(), two)


async def test_tombstones_are_their_creators(pool: Pool) -> None:
    async with connection(pool) as conn:
        gone = await seed.document(conn, tags=OPEN)
        await conn.execute("UPDATE memory.version SET status = 'tombstoned' WHERE id = $1", gone.version_id)
        assert await sees(conn, reader("alice"), gone)
        assert not await sees(conn, reader("bob"), gone)


async def test_inv_11_another_tenants_ids_are_unknown(pool: Pool) -> None:
    async with connection(pool) as conn:
        shared = await seed.document(conn, tags=OPEN)
        assert not await sees(conn, reader("alice", "*", tenant="other"), shared)
        assert not await sees(conn, reader(), seed.Seeded("kdoc_unknown", "kver_unknown"))


async def test_a_long_chain_of_claims_is_one_statement(pool: Pool) -> None:
    async with connection(pool) as conn:
        link = await seed.document(conn, tags=OPEN)
        first = link
        for _ in range(120):
            link = await seed.document(conn, creator="d", tags=[TEAM], derived_from=[link.version_id])
        assert await sees(conn, reader(), link)
        await conn.execute("UPDATE memory.document SET access_tags = '{}' WHERE id = $1", first.document_id)
        assert not await sees(conn, reader(), link)
