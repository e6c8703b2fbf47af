"""Reads what a decision about visibility needs: versions with their documents' tags, their sources, the receipts."""

from collections.abc import Collection
from dataclasses import dataclass

from memory_plane.contracts.enums import VersionStatus
from memory_plane.store.database import SAME, Connection


@dataclass(frozen=True, slots=True)
class LineageRow:
    """A version, who made its document, the document's tags, and the versions it was derived from."""

    version_id: str
    status: VersionStatus
    creator: str
    access_tags: tuple[str, ...]
    sources: tuple[str, ...]


async def with_sources(conn: Connection, tenant_id: str, version_ids: Collection[str]) -> dict[str, LineageRow]:
    """These versions and, transitively, all they were derived from, in one statement. Ids that name no version of the
    tenant are absent. UNION drops what was met before, so that even a cycle would end."""
    rows = await conn.fetch(
        f"""
        WITH RECURSIVE node (id) AS (
            SELECT unnest($2::text[])
            UNION
            SELECT e.to_id FROM node n
            JOIN memory.edge e ON e.tenant_id = $1 AND e.from_id = n.id AND e.rel = 'derived_from'
        )
        SELECT v.id, v.status, d.created_by_principal_id, d.access_tags,
               ARRAY(SELECT e.to_id FROM memory.edge e
                     WHERE e.tenant_id = $1 AND e.from_id = v.id AND e.rel = 'derived_from') AS sources
        FROM node n
        JOIN memory.version v ON v.tenant_id {SAME} $1 AND v.id = n.id
        JOIN memory.document d ON d.tenant_id {SAME} $1 AND d.id = v.document_id
        """,  # noqa: S608 - built from constants
        tenant_id,
        list(version_ids),
    )
    return {
        row["id"]: LineageRow(
            version_id=row["id"],
            status=VersionStatus(row["status"]),
            creator=row["created_by_principal_id"],
            access_tags=tuple(row["access_tags"]),
            sources=tuple(row["sources"]),
        )
        for row in rows
    }


async def receipts(
    conn: Connection, tenant_id: str, version_ids: Collection[str]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Approved tags by (claim version, source version)."""
    rows = await conn.fetch(
        """
        SELECT version_id, source_version_id, array_agg(tag) AS tags
        FROM memory.audience_receipt, unnest(tags) AS tag
        WHERE tenant_id = $1 AND version_id = ANY ($2::text[])
        GROUP BY version_id, source_version_id
        """,
        tenant_id,
        list(version_ids),
    )
    return {(row["version_id"], row["source_version_id"]): tuple(row["tags"]) for row in rows}


async def current_versions(conn: Connection, tenant_id: str, document_ids: Collection[str]) -> dict[str, str]:
    """By document: the active version, else the newest that is not tombstoned, else the newest."""
    rows = await conn.fetch(
        f"""
        SELECT DISTINCT ON (document_id) document_id, id
        FROM memory.version
        WHERE tenant_id {SAME} $1 AND document_id = ANY ($2::text[])
        ORDER BY document_id, (status = 'active') DESC, (status <> 'tombstoned') DESC, version DESC
        """,  # noqa: S608 - built from constants
        tenant_id,
        list(document_ids),
    )
    return {row["document_id"]: row["id"] for row in rows}
