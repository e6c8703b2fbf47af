"""Reads of the feed: a range of positions at a time, narrowed by a superset of what the caller sees."""

import asyncpg

from memory_plane.core.visibility import VisibilityScope
from memory_plane.store.database import Connection
from memory_plane.store.visibility import predicate

TOLD_TO_ALL = ("retagged", "forgotten", "purged")
"""Event kinds that every follower in the tenant learns, ids only: a mirror must drop what is gone."""


async def head(conn: Connection, tenant_id: str) -> int:
    """The last position that is committed: positions are given in commit order, so all up to it can be read."""
    position = await conn.fetchval("SELECT position FROM memory.tenant_counter WHERE tenant_id = $1", tenant_id)
    return int(position or 0)


async def captured(
    conn: Connection,
    tenant_id: str,
    after: int,
    through: int,
    limit: int,
    scope: VisibilityScope,
    exclude_generator: str | None,
) -> list[asyncpg.Record]:
    """Versions captured at positions in (after, through], ascending; at most `limit`. Not those withdrawn meanwhile:
    deprecated, tombstoned, or ephemeral and past their time."""
    params: list[object] = [tenant_id, after, through, limit, exclude_generator]
    return await conn.fetch(
        f"""
        SELECT v.feed_position, v.id, v.document_id, v.kind, v.title, v.status, v.created_by_kind,
               v.generator_agent_id, v.provenance, v.occurred_at, v.ingested_at, d.access_tags
        FROM memory.version v
        JOIN memory.document d ON d.tenant_id = $1 AND d.id = v.document_id
        WHERE v.tenant_id = $1 AND v.feed_position > $2 AND v.feed_position <= $3
          AND v.status NOT IN ('deprecated', 'tombstoned')
          AND NOT (v.retention_class = 'ephemeral'
                   AND coalesce(v.valid_until, v.ingested_at + interval '7 days') <= clock_timestamp())
          AND ($5::text IS NULL OR v.generator_agent_id IS DISTINCT FROM $5)
          AND {predicate(scope, params)}
        ORDER BY v.feed_position
        LIMIT $4
        """,  # noqa: S608 - the predicate is made of placeholders
        *params,
    )


async def events(
    conn: Connection, tenant_id: str, after: int, through: int, limit: int, scope: VisibilityScope
) -> list[asyncpg.Record]:
    """Events at positions in (after, through], ascending; at most `limit`."""
    params: list[object] = [tenant_id, after, through, limit, list(TOLD_TO_ALL)]
    return await conn.fetch(
        f"""
        SELECT e.position, e.kind, e.document_id, e.version_id, e.at
        FROM memory.feed_event e
        LEFT JOIN memory.document d ON d.tenant_id = $1 AND d.id = e.document_id
        WHERE e.tenant_id = $1 AND e.position > $2 AND e.position <= $3
          AND (e.kind = ANY ($5::text[]) OR (d.id IS NOT NULL AND {predicate(scope, params)}))
        ORDER BY e.position
        LIMIT $4
        """,  # noqa: S608 - the predicate is made of placeholders
        *params,
    )
