"""What was intended and is not being driven: for the reconciler, a bounded page at a time, fair between tenants."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from memory_plane.store.database import Connection
from memory_plane.store.derivations import HOLD


@dataclass(frozen=True, slots=True)
class StalledVersion:
    tenant_id: str
    version_id: str


async def pending_embeds(conn: Connection, older_than: timedelta, limit: int) -> list[StalledVersion]:
    """Versions that have waited to be embedded under their tenant's live generation, with no workflow on them.

    From every tenant in turn, so that one that waits for thousands hides no other.
    """
    rows = await conn.fetch(
        """
        SELECT g.tenant_id, waiting.version_id FROM memory.generation g
        CROSS JOIN LATERAL (
            SELECT d.version_id, row_number() OVER (ORDER BY d.version_id) AS turn FROM memory.derivation d
            JOIN memory.version v ON v.id = d.version_id AND v.status <> 'tombstoned'
            WHERE d.tenant_id = g.tenant_id AND d.generation_id = g.id AND d.embed_state = 'pending'
              AND d.updated_at < clock_timestamp() - $1::interval
              AND (d.held_until IS NULL OR d.held_until <= clock_timestamp())
            ORDER BY d.version_id LIMIT $2
        ) AS waiting
        WHERE g.state = 'live'
        ORDER BY waiting.turn, g.tenant_id LIMIT $2
        """,
        older_than,
        limit,
    )
    return [StalledVersion(row["tenant_id"], row["version_id"]) for row in rows]


async def pending_processes(conn: Connection, older_than: timedelta, limit: int) -> list[StalledVersion]:
    """Versions that have waited to be processed, with no attempt under way; each tenant's longest waiting first."""
    rows = await conn.fetch(
        """
        SELECT tenant_id, version_id FROM (
            SELECT p.tenant_id, p.version_id,
                   row_number() OVER (PARTITION BY p.tenant_id ORDER BY min(p.updated_at)) AS turn
            FROM memory.process_request p
            JOIN memory.version v ON v.id = p.version_id AND v.status <> 'tombstoned'
            WHERE p.state = 'pending' AND p.updated_at < clock_timestamp() - $1::interval
              AND (p.held_until IS NULL OR p.held_until <= clock_timestamp())
            GROUP BY p.tenant_id, p.version_id
        ) AS waiting
        ORDER BY turn, tenant_id LIMIT $2
        """,
        older_than,
        limit,
    )
    return [StalledVersion(row["tenant_id"], row["version_id"]) for row in rows]


async def hold_embeds(conn: Connection, versions: Sequence[StalledVersion]) -> None:
    """Leave alone for a while what an ingest has just been started for: it may have to wait for a worker."""
    await conn.execute(
        """
        UPDATE memory.derivation d SET held_until = clock_timestamp() + $3::interval
        FROM unnest($1::text[], $2::text[]) AS given (tenant_id, version_id)
        WHERE d.tenant_id = given.tenant_id AND d.version_id = given.version_id AND d.embed_state = 'pending'
        """,
        [version.tenant_id for version in versions],
        [version.version_id for version in versions],
        HOLD,
    )
