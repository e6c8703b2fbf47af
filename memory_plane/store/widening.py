"""Audience requests as they are decided: the claim, its sources with their owners and tags, the receipts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

import asyncpg

from memory_plane.contracts.enums import VersionStatus, WideningState
from memory_plane.store.database import Connection

_REQUEST = "id, tenant_id, document_id, version_id, source_version_id, tags, state, requested_by"


@dataclass(frozen=True, slots=True)
class AudienceRequest:
    """`tags` are asked for beyond those of this source; its owner, the creator of its document, decides."""

    id: str
    tenant_id: str
    document_id: str
    version_id: str
    source_version_id: str
    tags: tuple[str, ...]
    state: WideningState
    requested_by: str


@dataclass(frozen=True, slots=True)
class Source:
    """A source of a claim, with the tags of its document and those that its owner has approved for the claim."""

    version_id: str
    document_id: str
    status: VersionStatus
    owner: str
    tags: frozenset[str]
    approved: frozenset[str]


@dataclass(frozen=True, slots=True)
class Claim:
    document_id: str
    creator: str
    status: VersionStatus
    tags: tuple[str, ...]
    sources: tuple[Source, ...]


async def request(conn: Connection, tenant_id: str, request_id: str) -> AudienceRequest | None:
    row = await conn.fetchrow(
        f"SELECT {_REQUEST} FROM memory.audience_request WHERE tenant_id = $1 AND id = $2",  # noqa: S608 - a constant
        tenant_id,
        request_id,
    )
    return None if row is None else _request(row)


async def mark_seen(conn: Connection, tenant_id: str, request_id: str) -> None:
    """Its workflow waits for the decision."""
    await conn.execute(
        """
        UPDATE memory.audience_request SET workflow_seen_at = clock_timestamp()
        WHERE tenant_id = $1 AND id = $2 AND workflow_seen_at IS NULL
        """,
        tenant_id,
        request_id,
    )


async def unseen(conn: Connection, older_than: timedelta, limit: int) -> list[tuple[str, str]]:
    """Tenant and id of open requests that have waited so long without a workflow, oldest first."""
    rows = await conn.fetch(
        """
        SELECT tenant_id, id FROM memory.audience_request
        WHERE state = 'open' AND workflow_seen_at IS NULL AND created_at < clock_timestamp() - $1::interval
        ORDER BY created_at LIMIT $2
        """,
        older_than,
        limit,
    )
    return [(row["tenant_id"], row["id"]) for row in rows]


async def open_requests(conn: Connection, tenant_id: str) -> list[tuple[AudienceRequest, str]]:
    """Each with the owner of its source, who decides; oldest first."""
    rows = await conn.fetch(
        """
        SELECT r.id, r.tenant_id, r.document_id, r.version_id, r.source_version_id, r.tags, r.state, r.requested_by,
               d.created_by_principal_id AS owner
        FROM memory.audience_request r
        JOIN memory.version v ON v.tenant_id = $1 AND v.id = r.source_version_id
        JOIN memory.document d ON d.tenant_id = $1 AND d.id = v.document_id
        WHERE r.tenant_id = $1 AND r.state = 'open' ORDER BY r.created_at, r.id
        """,
        tenant_id,
    )
    return [(_request(row), row["owner"]) for row in rows]


async def source_documents(conn: Connection, tenant_id: str, version_id: str) -> list[str]:
    """The documents that this version was derived from; ids never change, so no lock is needed to ask."""
    rows = await conn.fetch(
        """
        SELECT DISTINCT v.document_id FROM memory.edge e
        JOIN memory.version v ON v.tenant_id = $1 AND v.id = e.to_id
        WHERE e.tenant_id = $1 AND e.from_id = $2 AND e.rel = 'derived_from'
        """,
        tenant_id,
        version_id,
    )
    return [row["document_id"] for row in rows]


async def claim(conn: Connection, tenant_id: str, version_id: str) -> Claim | None:
    """The claim with its sources as they are, under their locks; None where it is gone."""
    row = await conn.fetchrow(
        """
        SELECT d.id, d.created_by_principal_id, d.access_tags, v.status
        FROM memory.version v JOIN memory.document d ON d.tenant_id = $1 AND d.id = v.document_id
        WHERE v.tenant_id = $1 AND v.id = $2
        """,
        tenant_id,
        version_id,
    )
    if row is None:
        return None
    sources = await conn.fetch(
        """
        SELECT s.id, s.document_id, s.status, d.created_by_principal_id, d.access_tags,
               ARRAY(SELECT tag FROM memory.audience_receipt r, unnest(r.tags) AS tag
                     WHERE r.tenant_id = $1 AND r.version_id = $2 AND r.source_version_id = s.id) AS approved
        FROM memory.edge e
        JOIN memory.version s ON s.tenant_id = $1 AND s.id = e.to_id
        JOIN memory.document d ON d.tenant_id = $1 AND d.id = s.document_id
        WHERE e.tenant_id = $1 AND e.from_id = $2 AND e.rel = 'derived_from'
        """,
        tenant_id,
        version_id,
    )
    return Claim(
        document_id=row["id"],
        creator=row["created_by_principal_id"],
        status=VersionStatus(row["status"]),
        tags=tuple(row["access_tags"]),
        sources=tuple(
            Source(
                version_id=each["id"],
                document_id=each["document_id"],
                status=VersionStatus(each["status"]),
                owner=each["created_by_principal_id"],
                tags=frozenset(each["access_tags"]),
                approved=frozenset(each["approved"]),
            )
            for each in sources
        ),
    )


async def decide(conn: Connection, asked: AudienceRequest, state: WideningState, decided_by: str) -> None:
    """Record the decision on an open request; an approval leaves its receipt."""
    await conn.execute(
        """
        UPDATE memory.audience_request SET state = $3, decided_at = clock_timestamp()
        WHERE tenant_id = $1 AND id = $2
        """,
        asked.tenant_id,
        asked.id,
        state,
    )
    if state is not WideningState.APPROVED:
        return
    await conn.execute(
        """
        INSERT INTO memory.audience_receipt
            (request_id, tenant_id, document_id, version_id, source_version_id, tags, approved_by, approved_at)
        VALUES ($2, $1, $3, $4, $5, $6, $7, clock_timestamp())
        """,
        asked.tenant_id,
        asked.id,
        asked.document_id,
        asked.version_id,
        asked.source_version_id,
        list(asked.tags),
        decided_by,
    )


def covered(claim: Claim, wanted: Collection[str]) -> Sequence[str]:
    """Those of these tags that each source either carries or has had approved for the claim."""
    return [tag for tag in wanted if all(tag in source.tags | source.approved for source in claim.sources)]


def _request(row: asyncpg.Record) -> AudienceRequest:
    return AudienceRequest(
        id=row["id"],
        tenant_id=row["tenant_id"],
        document_id=row["document_id"],
        version_id=row["version_id"],
        source_version_id=row["source_version_id"],
        tags=tuple(row["tags"]),
        state=WideningState(row["state"]),
        requested_by=row["requested_by"],
    )
