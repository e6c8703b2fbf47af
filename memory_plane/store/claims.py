"""Claims as a distiller needs them: what is one, what there is of one source, and the source itself."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from memory_plane.contracts.names import CLAIM_ADAPTER
from memory_plane.store.database import Connection
from memory_plane.store.versions import expired


@dataclass(frozen=True, slots=True)
class Source:
    """A version that can be distilled: it is served, and its payload is there."""

    document_id: str
    title: str
    kind: str
    occurred_at: datetime
    raw_capture_id: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The document `<agent>/<source version>/<number>`, and its active version if it has one."""

    number: int
    document_id: str
    version_id: str | None


async def claims_among(conn: Connection, tenant_id: str, version_ids: Collection[str]) -> set[str]:
    """Which of these versions were derived from others."""
    rows = await conn.fetch(
        """
        SELECT DISTINCT from_id FROM memory.edge
        WHERE tenant_id = $1 AND from_id = ANY ($2::text[]) AND rel = 'derived_from'
        """,
        tenant_id,
        list(version_ids),
    )
    return {row["from_id"] for row in rows}


async def source(conn: Connection, tenant_id: str, version_id: str) -> Source | None:
    """None for what is gone, withdrawn or past its time."""
    row = await conn.fetchrow(
        f"""
        SELECT v.document_id, v.title, v.kind, v.occurred_at, v.raw_capture_id FROM memory.version v
        WHERE v.tenant_id = $1 AND v.id = $2 AND v.status NOT IN ('deprecated', 'tombstoned') AND NOT {expired()}
        """,  # noqa: S608 - a constant
        tenant_id,
        version_id,
    )
    return None if row is None else Source(**dict(row))


async def document_of(conn: Connection, tenant_id: str, version_id: str) -> str | None:
    found: str | None = await conn.fetchval(
        "SELECT document_id FROM memory.version WHERE tenant_id = $1 AND id = $2", tenant_id, version_id
    )
    return found


async def claims_of(conn: Connection, tenant_id: str, agent_id: str, source_version_id: str) -> list[Claim]:
    """What this agent has written of this source, by number."""
    prefix = f"{agent_id}/{source_version_id}/"
    rows = await conn.fetch(
        """
        SELECT DISTINCT substr(d.external_ref, length($4) + 1) AS number, d.id, a.id AS version_id
        FROM memory.edge e
        JOIN memory.version v ON v.tenant_id = $1 AND v.id = e.from_id
        JOIN memory.document d ON d.tenant_id = $1 AND d.id = v.document_id
        LEFT JOIN memory.version a ON a.tenant_id = $1 AND a.document_id = d.id AND a.status = 'active'
        WHERE e.tenant_id = $1 AND e.rel = 'derived_from' AND e.to_id = $2
          AND d.adapter = $3 AND starts_with(d.external_ref, $4)
          AND substr(d.external_ref, length($4) + 1) ~ '^[0-9]{1,6}$'
        """,
        tenant_id,
        source_version_id,
        CLAIM_ADAPTER,
        prefix,
    )
    found = [Claim(int(row["number"]), row["id"], row["version_id"]) for row in rows]
    return sorted(found, key=lambda claim: claim.number)
