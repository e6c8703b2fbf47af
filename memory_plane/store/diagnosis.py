"""What an operator asks of the database: what waits, what failed, which recipes serve."""

from dataclasses import dataclass
from typing import Any

from memory_plane.store.database import Connection
from memory_plane.store.vectors import embedding_table

_BACKLOG = """
SELECT count(*) FILTER (WHERE d.embed_state = 'pending') AS pending,
       count(*) FILTER (WHERE d.embed_state = 'failed') AS failed,
       count(*) FILTER (WHERE d.embed_state = 'not_configured') AS not_configured,
       extract(epoch FROM clock_timestamp() - min(d.updated_at) FILTER (WHERE d.embed_state = 'pending')) AS oldest
FROM memory.derivation d
JOIN memory.generation g ON g.id = d.generation_id AND g.state = 'live'
JOIN memory.version v ON v.id = d.version_id AND v.status <> 'tombstoned'
WHERE d.embed_state <> 'embedded'
"""

_LIVE_RECIPES = """
SELECT recipe, count(*) AS tenants FROM memory.generation WHERE state = 'live' GROUP BY recipe
"""

_INVALID_INDEXES = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'memory' AND NOT i.indisvalid ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Derivations of live generations that have no vectors. `oldest_seconds` is the age of the oldest pending one."""

    pending: int
    failed: int
    not_configured: int
    oldest_seconds: float | None


async def backlog(connection: Connection) -> Backlog:
    row = await connection.fetchrow(_BACKLOG)
    assert row is not None  # noqa: S101 - an aggregate always answers one row
    oldest = row["oldest"]
    return Backlog(row["pending"], row["failed"], row["not_configured"], float(oldest) if oldest is not None else None)


async def live_recipes(connection: Connection) -> list[tuple[dict[str, Any], int]]:
    """Each recipe that serves, with the number of tenants it serves."""
    return [(row["recipe"], row["tenants"]) for row in await connection.fetch(_LIVE_RECIPES)]


async def tables_being_filled(connection: Connection) -> set[str]:
    """Vector tables that a transform run under way fills, to index them at its end."""
    rows = await connection.fetch(
        "SELECT DISTINCT model_key FROM memory.generation WHERE state = 'building' AND model_key IS NOT NULL"
    )
    return {embedding_table(row["model_key"]) for row in rows}


async def invalid_indexes(connection: Connection) -> list[str]:
    """Indexes that a failed concurrent build left behind."""
    return [row["relname"] for row in await connection.fetch(_INVALID_INDEXES)]


async def versions(connection: Connection) -> tuple[str, str | None]:
    """The server's version and pgvector's, where it is installed."""
    row = await connection.fetchrow(
        "SELECT current_setting('server_version') AS server,"
        " (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector"
    )
    assert row is not None  # noqa: S101 - a SELECT of expressions answers one row
    return row["server"], row["pgvector"]
