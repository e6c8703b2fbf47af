"""Feed entries that a distiller could not distil: kept with a reason, driven again when somebody asks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory_plane.store.database import Connection


@dataclass(frozen=True, slots=True)
class Quarantined:
    """`reason` says what failed and holds nothing of the entry's content."""

    agent_id: str
    version_id: str
    document_id: str
    reason: str
    attempts: int
    created_at: datetime
    retry_requested_at: datetime | None


async def put(conn: Connection, tenant_id: str, agent_id: str, version_id: str, reason: str, attempts: int) -> None:
    """Keep the entry; of one that is here the attempts add up, and a request to drive it again is over. Nothing is
    kept of a version that is gone or forgotten."""
    await conn.execute(
        """
        INSERT INTO memory.distill_quarantine AS q (tenant_id, agent_id, version_id, reason, attempts)
        SELECT $1, $2, v.id, $4, $5 FROM memory.version v
        WHERE v.tenant_id = $1 AND v.id = $3 AND v.status <> 'tombstoned'
        ON CONFLICT (tenant_id, agent_id, version_id) DO UPDATE
        SET reason = excluded.reason, attempts = q.attempts + excluded.attempts, retry_requested_at = NULL
        """,
        tenant_id,
        agent_id,
        version_id,
        reason,
        attempts,
    )


async def hold(conn: Connection, tenant_id: str, agent_id: str, version_id: str) -> bool:
    """Lock the entry; whether it is here and is to be driven again."""
    found = await conn.fetchval(
        """
        SELECT true FROM memory.distill_quarantine
        WHERE tenant_id = $1 AND agent_id = $2 AND version_id = $3 AND retry_requested_at IS NOT NULL FOR UPDATE
        """,
        tenant_id,
        agent_id,
        version_id,
    )
    return bool(found)


async def remove(conn: Connection, tenant_id: str, agent_id: str, version_id: str) -> None:
    await conn.execute(
        "DELETE FROM memory.distill_quarantine WHERE tenant_id = $1 AND agent_id = $2 AND version_id = $3",
        tenant_id,
        agent_id,
        version_id,
    )


async def to_retry(conn: Connection, tenant_id: str, agent_id: str, limit: int) -> list[str]:
    """The versions that are to be driven again, the longest waiting first."""
    rows = await conn.fetch(
        """
        SELECT version_id FROM memory.distill_quarantine
        WHERE tenant_id = $1 AND agent_id = $2 AND retry_requested_at IS NOT NULL
        ORDER BY retry_requested_at, version_id LIMIT $3
        """,
        tenant_id,
        agent_id,
        limit,
    )
    return [row["version_id"] for row in rows]


async def request_retry(conn: Connection, tenant_id: str, agent_id: str, version_ids: Sequence[str] | None) -> int:
    """Ask for these (None: for all of the agent) to be driven again; how many there were."""
    status: str = await conn.execute(
        """
        UPDATE memory.distill_quarantine SET retry_requested_at = clock_timestamp()
        WHERE tenant_id = $1 AND agent_id = $2 AND ($3::text[] IS NULL OR version_id = ANY ($3::text[]))
        """,
        tenant_id,
        agent_id,
        version_ids,
    )
    return int(status.removeprefix("UPDATE "))


async def listed(conn: Connection, tenant_id: str, limit: int) -> list[Quarantined]:
    """What the tenant's distillers have put aside, newest first."""
    rows = await conn.fetch(
        """
        SELECT q.agent_id, q.version_id, v.document_id, q.reason, q.attempts, q.created_at, q.retry_requested_at
        FROM memory.distill_quarantine q JOIN memory.version v ON v.tenant_id = $1 AND v.id = q.version_id
        WHERE q.tenant_id = $1 ORDER BY q.created_at DESC, q.version_id LIMIT $2
        """,
        tenant_id,
        limit,
    )
    return [Quarantined(**dict(row)) for row in rows]
