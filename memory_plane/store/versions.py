"""The versions of one document, read and changed under the document's lock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory_plane.contracts.enums import EmbedState, RetentionClass
from memory_plane.store.database import SAME, Connection

EPHEMERAL_EXPIRY = (
    "coalesce({v}.valid_until, ({v}.ingested_at AT TIME ZONE 'UTC' + interval '7 days') AT TIME ZONE 'UTC')"
)
"""When an ephemeral version stops being served; the expression of the index `version_ephemeral`."""


def expired(version: str = "v") -> str:
    """Whether the version of that alias is past its time, as SQL; true before any sweep has seen it."""
    expiry = EPHEMERAL_EXPIRY.format(v=version)
    return f"({version}.retention_class = 'ephemeral' AND {expiry} <= clock_timestamp())"


@dataclass(frozen=True, slots=True)
class ActiveVersion:
    id: str
    content_hash: str
    retention_class: RetentionClass
    created_by: str
    is_expired: bool
    embed_state: EmbedState | None
    """Under the live generation; None where nothing has been derived."""


@dataclass(frozen=True, slots=True)
class DocumentState:
    """What a re-capture must know of the document's past."""

    active: ActiveVersion | None
    last_number: int
    is_forgotten: bool
    """It has had versions, and all of them are tombstoned."""
    raw_capture_id: str | None
    """The raw capture of the same payload, where it was captured before."""

    def without_active(self) -> "DocumentState":
        """After its active version has been deprecated."""
        return replace(self, active=None)


async def document_state(
    conn: Connection, tenant_id: str, document_id: str, *, generation_id: str, source_hash: str
) -> DocumentState:
    row = await conn.fetchrow(
        f"""
        SELECT v.id, v.content_hash, v.retention_class, v.created_by_principal_id, {expired()} AS is_expired,
               e.embed_state, past.last_number, past.is_forgotten,
               (SELECT id FROM memory.raw_capture WHERE tenant_id = $1 AND source_hash = $4) AS raw_capture_id
        FROM (
            SELECT (SELECT max(version) FROM memory.version
                    WHERE tenant_id {SAME} $1 AND document_id = $2) AS last_number,
                   NOT EXISTS (SELECT FROM memory.version WHERE tenant_id {SAME} $1 AND document_id = $2
                               AND status <> 'tombstoned') AS is_forgotten
        ) AS past
        LEFT JOIN memory.version v ON v.tenant_id {SAME} $1 AND v.document_id = $2 AND v.status = 'active'
        LEFT JOIN memory.derivation e ON e.version_id = v.id AND e.generation_id = $3
        """,  # noqa: S608 - built from constants
        tenant_id,
        document_id,
        generation_id,
        source_hash,
    )
    assert row is not None, "subqueries alone always make a row"  # noqa: S101
    active = None
    if row["id"] is not None:
        active = ActiveVersion(
            id=row["id"],
            content_hash=row["content_hash"],
            retention_class=RetentionClass(row["retention_class"]),
            created_by=row["created_by_principal_id"],
            is_expired=row["is_expired"],
            embed_state=None if row["embed_state"] is None else EmbedState(row["embed_state"]),
        )
    return DocumentState(
        active=active,
        last_number=row["last_number"] or 0,
        is_forgotten=row["is_forgotten"],
        raw_capture_id=row["raw_capture_id"],
    )


async def replace_active(
    conn: Connection,
    tenant_id: str,
    document_id: str,
    *,
    title: str,
    kind: str,
    attributes: Mapping[str, Any],
    occurred_at: datetime | None,
    is_claim: bool,
    access_tags: Sequence[str],
) -> None:
    """Make room for the next version, which an index lets be the only active one, and give the document its face."""
    await conn.execute(
        f"""
        WITH superseded AS (
            UPDATE memory.version SET status = 'superseded', status_at = clock_timestamp()
            WHERE tenant_id {SAME} $1 AND document_id = $2 AND status = 'active'
        )
        UPDATE memory.document
        SET title = $3, kind = $4, attributes = $5, occurred_at = coalesce($6, clock_timestamp()), access_tags = $7,
            is_claim = $8
        WHERE tenant_id {SAME} $1 AND id = $2
        """,  # noqa: S608 - built from constants
        tenant_id,
        document_id,
        title,
        kind,
        attributes,
        occurred_at,
        access_tags,
        is_claim,
    )


async def deprecate_expired(conn: Connection, tenant_id: str, version_id: str) -> None:
    await conn.execute(
        """
        UPDATE memory.version SET status = 'deprecated', status_at = clock_timestamp(), status_reason = 'expired'
        WHERE tenant_id = $1 AND id = $2 AND status = 'active'
        """,
        tenant_id,
        version_id,
    )


async def reclass(conn: Connection, tenant_id: str, version_id: str, retention_class: RetentionClass) -> None:
    await conn.execute(
        "UPDATE memory.version SET retention_class = $3 WHERE tenant_id = $1 AND id = $2",
        tenant_id,
        version_id,
        retention_class,
    )


async def drive_embed_again(conn: Connection, tenant_id: str, version_id: str, generation_id: str) -> None:
    """A failed embed is to be tried again, with all its attempts."""
    await conn.execute(
        """
        UPDATE memory.derivation
        SET embed_state = 'pending', attempts = 0, last_error = NULL, held_until = NULL, updated_at = clock_timestamp()
        WHERE tenant_id = $1 AND version_id = $2 AND generation_id = $3 AND embed_state = 'failed'
        """,
        tenant_id,
        version_id,
        generation_id,
    )


async def request_process(conn: Connection, tenant_id: str, version_id: str, processors: Sequence[str]) -> None:
    """Ask for these processors; one that is done stays done, one in quarantine is tried again."""
    await conn.execute(
        """
        INSERT INTO memory.process_request AS p (version_id, processor, tenant_id, state)
        SELECT $2, processor, $1, 'pending' FROM unnest($3::text[]) AS processor
        ON CONFLICT (version_id, processor) DO UPDATE
        SET state = 'pending', attempts = 0, last_error = NULL, held_until = NULL, updated_at = clock_timestamp()
        WHERE p.state = 'quarantined'
        """,
        tenant_id,
        version_id,
        processors,
    )


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is still to be done for a version under the live generation."""

    embed_state: EmbedState | None
    process_pending: bool


async def remaining(conn: Connection, tenant_id: str, version_ids: Sequence[str]) -> dict[str, Remaining]:
    """By version id; ids that are gone are absent."""
    rows = await conn.fetch(
        f"""
        SELECT v.id, e.embed_state,
               EXISTS (SELECT FROM memory.process_request p
                       WHERE p.version_id = v.id AND p.state = 'pending') AS process_pending
        FROM memory.version v
        LEFT JOIN memory.generation g ON g.tenant_id = $1 AND g.state = 'live'
        LEFT JOIN memory.derivation e ON e.version_id = v.id AND e.generation_id = g.id
        WHERE v.tenant_id {SAME} $1 AND v.id = ANY ($2::text[])
        """,  # noqa: S608 - built from constants
        tenant_id,
        version_ids,
    )
    return {
        row["id"]: Remaining(
            embed_state=None if row["embed_state"] is None else EmbedState(row["embed_state"]),
            process_pending=row["process_pending"],
        )
        for row in rows
    }
