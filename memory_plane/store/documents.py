"""Documents: the stable identity of a captured source, and its row's lock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_plane.store.database import Connection


@dataclass(frozen=True, slots=True)
class NewDocument:
    """What a first capture writes; of a document that exists only its name (adapter, external_ref) is used."""

    id: str
    tenant_id: str
    adapter: str
    external_ref: str
    title: str
    kind: str
    access_tags: Sequence[str]
    attributes: Mapping[str, Any]
    occurred_at: datetime | None
    is_claim: bool
    created_by: str


@dataclass(frozen=True, slots=True)
class LockedDocument:
    """A document under its lock, and the tenant's live generation as it was then."""

    id: str
    created_by: str
    access_tags: tuple[str, ...]
    is_new: bool
    live: tuple[str, str] | None
    """Id and stamp of the live generation, as of `LiveGeneration`."""


async def insert_or_lock(conn: Connection, document: NewDocument) -> LockedDocument:
    """Insert the document, or lock the one of that name and bump its `last_seen_at`.

    Versions read in the same statement would be those from before a wait for the lock: read them in the next. The
    live generation is safe to read here, under the cutover lock taken before.
    """
    row = await conn.fetchrow(
        """
        WITH document AS (
            INSERT INTO memory.document AS d
                (id, tenant_id, adapter, external_ref, title, kind, access_tags, attributes,
                 created_by_principal_id, occurred_at, is_claim, created_at, last_seen_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,
                    coalesce($10, clock_timestamp()), $11, clock_timestamp(), clock_timestamp())
            ON CONFLICT (tenant_id, adapter, external_ref) DO UPDATE SET last_seen_at = clock_timestamp()
            RETURNING id, created_by_principal_id, access_tags
        )
        SELECT document.*, g.id AS generation_id, g.xmin::text AS generation_stamp
        FROM document LEFT JOIN memory.generation g ON g.tenant_id = $2 AND g.state = 'live'
        """,
        document.id,
        document.tenant_id,
        document.adapter,
        document.external_ref,
        document.title,
        document.kind,
        document.access_tags,
        document.attributes,
        document.created_by,
        document.occurred_at,
        document.is_claim,
    )
    assert row is not None, "an upsert returns its row"  # noqa: S101
    return LockedDocument(
        id=row["id"],
        created_by=row["created_by_principal_id"],
        access_tags=tuple(row["access_tags"]),
        is_new=row["id"] == document.id,
        live=None if row["generation_id"] is None else (row["generation_id"], row["generation_stamp"]),
    )


async def find(conn: Connection, tenant_id: str, adapter: str, external_ref: str) -> str | None:
    """The id of the document of that name, without a lock."""
    found: str | None = await conn.fetchval(
        "SELECT id FROM memory.document WHERE tenant_id = $1 AND adapter = $2 AND external_ref = $3",
        tenant_id,
        adapter,
        external_ref,
    )
    return found


async def retag(conn: Connection, tenant_id: str, document_id: str, access_tags: Sequence[str]) -> None:
    await conn.execute(
        "UPDATE memory.document SET access_tags = $3 WHERE tenant_id = $1 AND id = $2",
        tenant_id,
        document_id,
        access_tags,
    )
