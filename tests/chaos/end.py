"""Waiting until everything has come to rest, and what is there then, read past every proxy."""

import asyncio
import time

import asyncpg

from memory_plane.store.database import Pool
from tests.chaos.checker import EndState, EventRow, VersionRow
from tests.chaos.history import canaries

_WAITING = """
SELECT count(*) FROM memory.derivation d JOIN memory.generation g ON g.id = d.generation_id
WHERE g.state = 'live' AND d.embed_state = 'pending'
"""
_VERSIONS = """
SELECT d.tenant_id, d.external_ref, d.id AS document_id, v.id, v.version, v.status, v.title,
       EXISTS (SELECT 1 FROM memory.raw_capture r WHERE r.id = v.raw_capture_id) AS has_raw,
       live.chunk_count, live.embed_state,
       (SELECT count(*) FROM memory.chunk c WHERE c.version_id = v.id AND c.generation_id = g.id) AS chunks,
       coalesce(e.vectors, 0) AS vectors
FROM memory.document d
JOIN memory.version v ON v.document_id = d.id
LEFT JOIN memory.generation g ON g.tenant_id = d.tenant_id AND g.state = 'live'
LEFT JOIN memory.derivation live ON live.version_id = v.id AND live.generation_id = g.id
LEFT JOIN ({vectors}) e ON e.version_id = v.id
"""
_COLUMNS = """
SELECT c.table_name, c.column_name, c.data_type
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE t.table_type = 'BASE TABLE' AND c.table_schema = 'memory'
  AND c.data_type IN ('text', 'jsonb', 'bytea', 'ARRAY', 'tsvector')
ORDER BY 1, 2
"""


async def at_rest(pool: Pool, seconds: float) -> float:
    """Wait until nothing waits for its vectors, at most so long; how long it took. Whatever is left is a violation,
    which the rows will show."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        try:
            waiting = await pool.fetchval(_WAITING)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            waiting = 1
        if not waiting:
            break
        await asyncio.sleep(0.3)
    return time.monotonic() - begun


async def end_state(pool: Pool) -> EndState:
    async with pool.acquire() as conn:
        tables = [row["table_name"] for row in await conn.fetch("SELECT DISTINCT table_name FROM memory.embed_model")]
        # By chunk, since one may have several vectors; of the live generation alone.
        counted = " UNION ALL ".join(
            f"SELECT c.version_id, count(DISTINCT c.id) AS vectors FROM memory.{table} x"
            " JOIN memory.chunk c ON c.id = x.chunk_id"
            " JOIN memory.generation g ON g.id = c.generation_id AND g.state = 'live' GROUP BY 1"
            for table in tables
        )
        counted = f"SELECT version_id, max(vectors) AS vectors FROM ({counted}) u GROUP BY 1"
        versions = [
            VersionRow(
                tenant=row["tenant_id"],
                ref=row["external_ref"],
                document_id=row["document_id"],
                version_id=row["id"],
                version=row["version"],
                status=row["status"],
                title=row["title"],
                has_raw=row["has_raw"],
                expected_chunks=row["chunk_count"],
                chunks=row["chunks"],
                vectors=row["vectors"],
                embed_state=row["embed_state"],
            )
            for row in await conn.fetch(_VERSIONS.format(vectors=counted), timeout=120)
        ]
        events: dict[str, list[EventRow]] = {}
        for row in await conn.fetch("SELECT * FROM memory.feed_event ORDER BY tenant_id, position"):
            event = EventRow(row["position"], row["kind"], row["document_id"], row["version_id"])
            events.setdefault(row["tenant_id"], []).append(event)
        counters = {
            row["tenant_id"]: row["position"] for row in await conn.fetch("SELECT * FROM memory.tenant_counter")
        }
        empty = await conn.fetch(
            "SELECT external_ref FROM memory.document d"
            " WHERE NOT EXISTS (SELECT 1 FROM memory.version v WHERE v.document_id = d.id)"
        )
        words: dict[str, set[tuple[int, int]]] = {}
        for table, column, data_type in await conn.fetch(_COLUMNS):
            value = f"encode({column}, 'escape')" if data_type == "bytea" else f"{column}::text"
            found = await conn.fetch(
                f"SELECT DISTINCT (regexp_matches({value}, 'zq[0-9]{{6}}r[0-9]+q', 'g'))[1] FROM memory.{table}",
                timeout=120,
            )
            if found:
                words[f"{table}.{column}"] = set().union(*(canaries(row[0]) for row in found))
    return EndState(versions, events, counters, words, [row["external_ref"] for row in empty])
