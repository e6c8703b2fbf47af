"""Captured facts written by hand, so that a test decides when each transaction comes to its last statement."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from memory_plane.contracts.enums import FeedEventKind, GrantEffect, GrantOrigin
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.caller import Caller
from memory_plane.core.grants import GrantRule
from memory_plane.core.visibility import Visibility
from memory_plane.store.database import Connection, Pool, transaction
from memory_plane.store.feed_events import Event, append_events

TENANT = "acme"


def reader(principal: str = "ann", *tags: str, tenant: str = TENANT) -> Visibility:
    """A caller who may search on these tags."""
    rules = [
        GrantRule(
            id=f"mgrt_{n}",
            principal_id=principal,
            role_id=None,
            resource=tag,
            action="search",
            effect=GrantEffect.ALLOW,
            origin=GrantOrigin.SYSTEM,
            conditions=None,
            expires_at=None,
        )
        for n, tag in enumerate(tags)
    ]
    return Visibility(Caller(tenant, principal), rules, datetime.now(UTC))


async def write_version(
    conn: Connection,
    *,
    creator: str = "ann",
    tags: Sequence[str] = (),
    title: str = "T",
    generator: str | None = None,
    retention_class: str = "standard",
    ingested_at: datetime | None = None,
    tenant: str = TENANT,
) -> tuple[str, str]:
    """A document with one active version, without its feed event; (document id, version id)."""
    document, raw, version = new_id(IdKind.DOCUMENT), new_id(IdKind.RAW_CAPTURE), new_id(IdKind.VERSION)
    at = ingested_at or datetime.now(UTC)
    await conn.execute(
        """
        INSERT INTO memory.document (id, tenant_id, adapter, external_ref, title, kind, access_tags,
                                     created_by_principal_id, created_at, last_seen_at)
        VALUES ($1, $2, 'test', $1, $3, 'note', $4, $5, $6, $6)
        """,
        document,
        tenant,
        title,
        list(tags),
        creator,
        at,
    )
    await conn.execute(
        """
        INSERT INTO memory.raw_capture (id, tenant_id, document_id, source_hash, adapter, raw_text, fetched_at)
        VALUES ($1, $2, $3, $1, 'test', '{}', $4)
        """,
        raw,
        tenant,
        document,
        at,
    )
    await conn.execute(
        """
        INSERT INTO memory.version (id, tenant_id, document_id, version, status, status_at, title, kind, content_hash,
            occurred_at, ingested_at, temporal_class, retention_class, provenance, source_class,
            created_by_principal_id, created_by_kind, generator_agent_id, authority, raw_capture_id)
        VALUES ($1, $2, $3, 1, 'active', $4, $5, 'note', $1, $4, $4, 'event', $6, 'stated', 'native', $7, 'human',
            $8, 0.5, $9)
        """,
        version,
        tenant,
        document,
        at,
        title,
        retention_class,
        creator,
        generator,
        raw,
    )
    return document, version


async def tell(conn: Connection, kind: FeedEventKind, document: str, version: str | None, tenant: str = TENANT) -> int:
    [position] = await append_events(conn, tenant, [Event(kind, document, version)])
    return position


async def capture(pool: Pool, *, before_commit: asyncio.Event | None = None, **facts: object) -> tuple[str, str]:
    """One captured version, committed once `before_commit` is set; (document id, version id)."""
    async with transaction(pool) as conn:
        document, version = await write_version(conn, **facts)  # type: ignore[arg-type]
        if before_commit is not None:
            await before_commit.wait()
        await tell(conn, FeedEventKind.CAPTURED, document, version, str(facts.get("tenant", TENANT)))
    return document, version
