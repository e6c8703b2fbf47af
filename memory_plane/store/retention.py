"""Statuses and classes of versions: deprecation, retention class, and what is past its time."""

from dataclasses import dataclass

from memory_plane.contracts.enums import RetentionClass, VersionStatus
from memory_plane.store.database import Connection
from memory_plane.store.versions import EPHEMERAL_EXPIRY


@dataclass(frozen=True, slots=True)
class VersionState:
    version_id: str
    document_id: str
    status: VersionStatus
    retention_class: RetentionClass
    created_by: str


async def version_state(conn: Connection, tenant_id: str, version_id: str) -> VersionState | None:
    row = await conn.fetchrow(
        """
        SELECT id, document_id, status, retention_class, created_by_principal_id FROM memory.version
        WHERE tenant_id = $1 AND id = $2
        """,
        tenant_id,
        version_id,
    )
    if row is None:
        return None
    return VersionState(
        version_id=row["id"],
        document_id=row["document_id"],
        status=VersionStatus(row["status"]),
        retention_class=RetentionClass(row["retention_class"]),
        created_by=row["created_by_principal_id"],
    )


async def document_creator(conn: Connection, tenant_id: str, document_id: str) -> str | None:
    """Who made the document's first version; None where there is no such document."""
    creator: str | None = await conn.fetchval(
        "SELECT created_by_principal_id FROM memory.document WHERE tenant_id = $1 AND id = $2", tenant_id, document_id
    )
    return creator


async def deprecate(conn: Connection, tenant_id: str, version_id: str, reason: str | None) -> bool:
    """False when it was not active or superseded. To be called under the document's lock."""
    status: str = await conn.execute(
        """
        UPDATE memory.version SET status = 'deprecated', status_at = clock_timestamp(), status_reason = $3
        WHERE tenant_id = $1 AND id = $2 AND status IN ('active', 'superseded')
        """,
        tenant_id,
        version_id,
        reason,
    )
    return status == "UPDATE 1"


async def tenants_with_expired(conn: Connection, after: str, limit: int) -> list[str]:
    """Tenants in which an ephemeral version is past its time and still active, in order, from behind `after`."""
    expiry = EPHEMERAL_EXPIRY.format(v="v")
    rows = await conn.fetch(
        f"""
        SELECT DISTINCT tenant_id FROM memory.version v
        WHERE tenant_id > $1 AND retention_class = 'ephemeral' AND status = 'active' AND {expiry} <= clock_timestamp()
        ORDER BY 1 LIMIT $2
        """,  # noqa: S608 - a constant
        after,
        limit,
    )
    return [row["tenant_id"] for row in rows]


async def expired_documents(conn: Connection, tenant_id: str, limit: int) -> list[str]:
    """Documents whose active version is past its time, at most `limit`, the longest overdue first."""
    expiry = EPHEMERAL_EXPIRY.format(v="v")
    rows = await conn.fetch(
        f"""
        SELECT document_id FROM memory.version v
        WHERE tenant_id = $1 AND retention_class = 'ephemeral' AND status = 'active' AND {expiry} <= clock_timestamp()
        ORDER BY {expiry} LIMIT $2
        """,  # noqa: S608 - a constant
        tenant_id,
        limit,
    )
    return [row["document_id"] for row in rows]


async def deprecate_expired(conn: Connection, tenant_id: str, document_ids: list[str]) -> list[tuple[str, str]]:
    """Deprecate what is past its time in these documents, whose locks are held; pairs of document and version."""
    expiry = EPHEMERAL_EXPIRY.format(v="v")
    rows = await conn.fetch(
        f"""
        UPDATE memory.version v SET status = 'deprecated', status_at = clock_timestamp(), status_reason = 'expired'
        WHERE tenant_id = $1 AND document_id = ANY ($2::text[]) AND retention_class = 'ephemeral' AND status = 'active'
          AND {expiry} <= clock_timestamp()
        RETURNING document_id, id
        """,  # noqa: S608 - a constant
        tenant_id,
        document_ids,
    )
    return [(row["document_id"], row["id"]) for row in rows]
