"""Reads of documents as they are: the recent ones, and one with its versions."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from memory_plane.core.visibility import VisibilityScope
from memory_plane.store.database import Connection
from memory_plane.store.versions import expired
from memory_plane.store.visibility import predicate

MAX_VERSIONS = 1_000
"""Of one document, the newest."""

Place = tuple[datetime, str]
"""Where a document stands in the list: last seen, id."""


async def recent(
    conn: Connection, tenant_id: str, scope: VisibilityScope, after: Place | None, limit: int
) -> Sequence[asyncpg.Record]:
    """Documents with an active version that is served, last seen first, from behind `after`; a superset of what the
    caller sees."""
    params: list[object] = [tenant_id]
    behind = ""
    if after is not None:
        params += after
        behind = "AND d.last_seen_at <= $2 AND (d.last_seen_at < $2 OR d.id > $3)"
    visible = predicate(scope, params)
    params.append(limit)
    return await conn.fetch(
        f"""
        SELECT d.id, d.last_seen_at, d.title, d.kind, d.adapter, v.id AS version_id,
               v.created_by_principal_id AS principal_id
        FROM memory.document d
        JOIN memory.version v ON v.document_id = d.id AND v.tenant_id = $1 AND v.status = 'active' AND NOT {expired()}
        WHERE d.tenant_id = $1 {behind} AND {visible}
        ORDER BY d.last_seen_at DESC, d.id
        LIMIT ${len(params)}
        """,  # noqa: S608 - values are parameters
        *params,
    )


async def document(conn: Connection, tenant_id: str, document_id: str) -> asyncpg.Record | None:
    return await conn.fetchrow(
        """
        SELECT id, adapter, external_ref, title, kind, access_tags, attributes, created_by_principal_id,
               created_at, last_seen_at
        FROM memory.document WHERE tenant_id = $1 AND id = $2
        """,
        tenant_id,
        document_id,
    )


async def versions(conn: Connection, tenant_id: str, document_id: str) -> Sequence[asyncpg.Record]:
    """Newest first, at most MAX_VERSIONS, each with its sources and its embed state under the live generation."""
    return await conn.fetch(
        f"""
        SELECT v.id, v.version, v.status, v.kind, v.title, v.provenance, v.source_class, v.temporal_class,
               v.retention_class, v.created_by_kind, v.generator_agent_id, v.occurred_at, v.ingested_at,
               v.valid_from, v.valid_until, v.supersedes_version_id, v.raw_capture_id, e.embed_state,
               v.status = 'active' AND {expired()} AS is_expired,
               ARRAY(SELECT s.to_id FROM memory.edge s
                     WHERE s.tenant_id = $1 AND s.from_id = v.id AND s.rel = 'derived_from'
                     ORDER BY s.to_id) AS derived_from
        FROM memory.version v
        LEFT JOIN memory.generation g ON g.tenant_id = $1 AND g.state = 'live'
        LEFT JOIN memory.derivation e ON e.version_id = v.id AND e.generation_id = g.id
        WHERE v.tenant_id = $1 AND v.document_id = $2
        ORDER BY v.version DESC LIMIT $3
        """,  # noqa: S608 - built from constants
        tenant_id,
        document_id,
        MAX_VERSIONS,
    )


async def raw_payload(conn: Connection, tenant_id: str, raw_capture_id: str) -> str | bytes | None:
    """The stored payload of one capture; None where it is gone."""
    row = await conn.fetchrow(
        "SELECT raw_text, raw_bytes FROM memory.raw_capture WHERE tenant_id = $1 AND id = $2", tenant_id, raw_capture_id
    )
    if row is None:
        return None
    payload: str | bytes = row["raw_text"] if row["raw_text"] is not None else row["raw_bytes"]
    return payload
