"""What a capture refers to: versions that a claim was derived from, and what it supports or contradicts."""

from collections.abc import Collection
from dataclasses import dataclass

from memory_plane.contracts.enums import VersionStatus
from memory_plane.store.database import SAME, Connection


@dataclass(frozen=True, slots=True)
class Target:
    """Where an id leads. A document has no version of its own here, an entity neither that nor a document."""

    document_id: str | None
    version_id: str | None


@dataclass(frozen=True, slots=True)
class ReferredVersion:
    is_tombstoned: bool
    access_tags: tuple[str, ...]
    """Of its document."""


async def targets(conn: Connection, tenant_id: str, ids: Collection[str]) -> dict[str, Target]:
    """Where these ids of versions, documents, chunks and entities lead; unknown ones are absent.

    Where an id leads never changes, so no lock is needed to ask.
    """
    rows = await conn.fetch(
        f"""
        SELECT id, document_id, id AS version_id FROM memory.version WHERE tenant_id {SAME} $1 AND id = ANY ($2::text[])
        UNION ALL
        SELECT id, id, NULL FROM memory.document WHERE tenant_id {SAME} $1 AND id = ANY ($2::text[])
        UNION ALL
        SELECT id, document_id, version_id FROM memory.chunk WHERE tenant_id {SAME} $1 AND id = ANY ($2::text[])
        UNION ALL
        SELECT id, NULL, NULL FROM memory.entity WHERE tenant_id {SAME} $1 AND id = ANY ($2::text[])
        """,  # noqa: S608 - built from constants
        tenant_id,
        list(ids),
    )
    return {row["id"]: Target(row["document_id"], row["version_id"]) for row in rows}


async def referred(conn: Connection, tenant_id: str, version_ids: Collection[str]) -> dict[str, ReferredVersion]:
    """Those that exist, as they are now; to be read under their documents' locks."""
    rows = await conn.fetch(
        f"""
        SELECT v.id, v.status, d.access_tags
        FROM memory.version v JOIN memory.document d ON d.tenant_id {SAME} $1 AND d.id = v.document_id
        WHERE v.tenant_id {SAME} $1 AND v.id = ANY ($2::text[])
        """,  # noqa: S608 - built from constants
        tenant_id,
        list(version_ids),
    )
    return {
        row["id"]: ReferredVersion(row["status"] == VersionStatus.TOMBSTONED, tuple(row["access_tags"])) for row in rows
    }
