"""Rows written directly, for tests of access alone: a document with one version, and what it was derived from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memory_plane.contracts.enums import GrantEffect, GrantOrigin
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.grants import GrantRule
from memory_plane.store.database import Connection

TENANT = "t"


@dataclass(frozen=True)
class Seeded:
    document_id: str
    version_id: str


async def document(
    conn: Connection, *, creator: str = "alice", tags: Sequence[str] | None = None, derived_from: Sequence[str] = ()
) -> Seeded:
    document_id = new_id(IdKind.DOCUMENT)
    written = [f"memory.owner:{creator}"] if tags is None else list(tags)
    await conn.execute(
        """
        INSERT INTO memory.document (id, tenant_id, adapter, external_ref, title, kind, access_tags,
                                     created_by_principal_id, created_at, last_seen_at)
        VALUES ($1, $2, 'http', $1, 'a title', 'note', $3, $4, now(), now())
        """,
        document_id,
        TENANT,
        written,
        creator,
    )
    version_id = await version(conn, document_id, creator=creator, derived_from=derived_from)
    return Seeded(document_id, version_id)


async def version(
    conn: Connection,
    document_id: str,
    *,
    number: int = 1,
    status: str = "active",
    creator: str = "alice",
    derived_from: Sequence[str] = (),
) -> str:
    version_id, raw_id = new_id(IdKind.VERSION), new_id(IdKind.RAW_CAPTURE)
    await conn.execute(
        """
        INSERT INTO memory.raw_capture (id, tenant_id, document_id, source_hash, adapter, raw_text, fetched_at)
        VALUES ($1, $2, $3, $1, 'http', '{}', now())
        """,
        raw_id,
        TENANT,
        document_id,
    )
    await conn.execute(
        """
        INSERT INTO memory.version (id, tenant_id, document_id, version, status, status_at, title, kind, content_hash,
            occurred_at, ingested_at, temporal_class, retention_class, provenance, source_class,
            created_by_principal_id, created_by_kind, authority, raw_capture_id)
        VALUES ($1, $2, $3, $4, $5, now(), 'a title', 'note', $1, now(), now(), 'event', 'standard', 'stated',
            'native', $6, 'human', 0.5, $7)
        """,
        version_id,
        TENANT,
        document_id,
        number,
        status,
        creator,
        raw_id,
    )
    for source in derived_from:
        await conn.execute(
            "INSERT INTO memory.edge (id, tenant_id, rel, from_type, from_id, to_type, to_id) "
            "VALUES ($1, $2, 'derived_from', 'version', $3, 'version', $4)",
            new_id(IdKind.EDGE),
            TENANT,
            version_id,
            source,
        )
    return version_id


async def receipt(conn: Connection, claim: Seeded, source_version_id: str, tags: Sequence[str]) -> None:
    request_id = new_id(IdKind.AUDIENCE_REQUEST)
    await conn.execute(
        "INSERT INTO memory.audience_request (id, tenant_id, document_id, version_id, source_version_id, tags, state, "
        "requested_by) VALUES ($1, $2, $3, $4, $5, $6, 'approved', 'distiller')",
        request_id,
        TENANT,
        claim.document_id,
        claim.version_id,
        source_version_id,
        list(tags),
    )
    await conn.execute(
        "INSERT INTO memory.audience_receipt (request_id, tenant_id, document_id, version_id, source_version_id, tags, "
        "approved_by, approved_at) VALUES ($1, $2, $3, $4, $5, $6, 'alice', $7)",
        request_id,
        TENANT,
        claim.document_id,
        claim.version_id,
        source_version_id,
        list(tags),
        datetime.now(UTC),
    )


def allow(principal: str, resource: str, action: str = "search", effect: GrantEffect = GrantEffect.ALLOW) -> GrantRule:
    return GrantRule(new_id(IdKind.GRANT_RULE), principal, None, resource, action, effect, GrantOrigin.SYSTEM)
