"""Erases what a document said, in every table that could hold it, and removes a document's rows.

The caller holds the locks of all documents concerned. Vector tables are taken from the catalog, so that one made a
moment ago is among them; a test holds that each table of the schema is either treated here or says nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory_plane.contracts.enums import VersionStatus
from memory_plane.core.access_tags import owner_tag
from memory_plane.store.database import Connection
from memory_plane.store.vectors import checked_table

REDACTED = "[redacted]"


async def closure(conn: Connection, tenant_id: str, document_id: str) -> dict[str, str]:
    """Every version of the document and, transitively, every version that was derived from one of these;
    each with its document."""
    rows = await conn.fetch(
        """
        WITH RECURSIVE gone (id) AS (
            SELECT id FROM memory.version WHERE tenant_id = $1 AND document_id = $2
            UNION
            SELECT e.from_id FROM gone g
            JOIN memory.edge e ON e.tenant_id = $1 AND e.to_id = g.id AND e.rel = 'derived_from'
        )
        SELECT v.id, v.document_id FROM gone JOIN memory.version v ON v.tenant_id = $1 AND v.id = gone.id
        """,
        tenant_id,
        document_id,
    )
    return {row["id"]: row["document_id"] for row in rows}


async def vector_tables(conn: Connection) -> list[str]:
    """The vector tables there are, registered or not."""
    rows = await conn.fetch(
        """
        SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'memory' AND c.relkind IN ('r', 'p') AND c.relname LIKE 'embedding\\_%' ORDER BY 1
        """
    )
    return [checked_table(row["relname"]) for row in rows]


async def tombstone(conn: Connection, tenant_id: str, version_ids: Collection[str], reason: str | None) -> set[str]:
    """End these versions and take from them what they said; those that were not tombstoned before."""
    rows = await conn.fetch(
        """
        UPDATE memory.version
        SET status = 'tombstoned', status_at = clock_timestamp(), status_reason = $4, title = $3, kind = $3,
            attributes = '{}', content_hash = 'forgotten:' || id
        WHERE tenant_id = $1 AND id = ANY ($2::text[]) AND status <> 'tombstoned'
        RETURNING id
        """,
        tenant_id,
        list(version_ids),
        REDACTED,
        reason,
    )
    return {row["id"] for row in rows}


async def erase_derived(conn: Connection, tenant_id: str, version_ids: Collection[str]) -> None:
    """Take what these versions said from all that was derived from them, under every generation and every model."""
    ids = list(version_ids)
    for table in await vector_tables(conn):
        await conn.execute(
            f"""
            DELETE FROM memory.{table} e USING memory.chunk c
            WHERE c.tenant_id = $1 AND c.version_id = ANY ($2::text[]) AND e.chunk_id = c.id
            """,  # noqa: S608 - the name is checked
            tenant_id,
            ids,
        )
    await conn.execute(
        """
        UPDATE memory.chunk
        SET text = $3, context = $3, grams = '', role = NULL, span_start = 0, span_end = 0, token_count = 0
        WHERE tenant_id = $1 AND version_id = ANY ($2::text[]) AND text <> $3
        """,
        tenant_id,
        ids,
        REDACTED,
    )
    for table in ("derivation", "distill_quarantine", "audience_request"):
        await conn.execute(
            f"DELETE FROM memory.{table} WHERE tenant_id = $1 AND version_id = ANY ($2::text[])",  # noqa: S608
            tenant_id,
            ids,
        )
    await conn.execute(
        """
        UPDATE memory.process_request SET state = 'skipped', last_error = NULL, updated_at = clock_timestamp()
        WHERE tenant_id = $1 AND version_id = ANY ($2::text[]) AND (state <> 'skipped' OR last_error IS NOT NULL)
        """,
        tenant_id,
        ids,
    )
    await conn.execute(
        "UPDATE memory.transform_failure SET error = $3 WHERE tenant_id = $1 AND version_id = ANY ($2::text[])",
        tenant_id,
        ids,
        REDACTED,
    )


async def erase_payloads(conn: Connection, tenant_id: str, document_ids: Collection[str]) -> None:
    """Take from these documents every raw capture that no version but tombstones refers to."""
    await conn.execute(
        """
        UPDATE memory.raw_capture r SET raw_text = $3, raw_bytes = NULL, source_hash = 'forgotten:' || r.id
        WHERE r.tenant_id = $1 AND r.document_id = ANY ($2::text[]) AND r.source_hash <> 'forgotten:' || r.id
          AND NOT EXISTS (SELECT FROM memory.version v
                          WHERE v.raw_capture_id = r.id AND v.tenant_id = $1 AND v.status <> 'tombstoned')
        """,
        tenant_id,
        list(document_ids),
        REDACTED,
    )


async def forgotten_among(conn: Connection, tenant_id: str, document_ids: Collection[str]) -> set[str]:
    """Those of these documents of which nothing but tombstones is left."""
    rows = await conn.fetch(
        """
        SELECT d.id FROM unnest($2::text[]) AS d (id)
        WHERE NOT EXISTS (SELECT FROM memory.version v
                          WHERE v.tenant_id = $1 AND v.document_id = d.id AND v.status <> 'tombstoned')
        """,
        tenant_id,
        list(document_ids),
    )
    return {row["id"] for row in rows}


async def redact_documents(conn: Connection, tenant_id: str, document_ids: Collection[str]) -> None:
    """Of documents of which only tombstones are left; the owner's tag, which says who, stays."""
    await conn.execute(
        """
        UPDATE memory.document
        SET title = $3, kind = $3, attributes = '{}', access_tags = ARRAY[$4 || created_by_principal_id]
        WHERE tenant_id = $1 AND id = ANY ($2::text[])
          AND (title, kind, attributes, access_tags)
              IS DISTINCT FROM ($3, $3, '{}'::jsonb, ARRAY[$4 || created_by_principal_id])
        """,
        tenant_id,
        list(document_ids),
        REDACTED,
        owner_tag(""),
    )


async def show_remaining_version(conn: Connection, tenant_id: str, document_ids: Collection[str]) -> None:
    """Documents that keep a version show it, not the newer one that has gone."""
    await conn.execute(
        """
        UPDATE memory.document d
        SET title = v.title, kind = v.kind, attributes = v.attributes, occurred_at = v.occurred_at
        FROM (
            SELECT DISTINCT ON (document_id) document_id, title, kind, attributes, occurred_at FROM memory.version
            WHERE tenant_id = $1 AND document_id = ANY ($2::text[]) AND status <> 'tombstoned'
            ORDER BY document_id, version DESC
        ) v
        WHERE d.tenant_id = $1 AND d.id = v.document_id
        """,
        tenant_id,
        list(document_ids),
    )


@dataclass(frozen=True, slots=True)
class Mention:
    """An edge from a document to an entity that it names."""

    edge_id: str
    document_id: str
    kind: str
    identifier: str


async def mentions(conn: Connection, tenant_id: str, document_ids: Collection[str]) -> list[Mention]:
    rows = await conn.fetch(
        """
        SELECT e.id, e.from_id, n.kind, n.identifier
        FROM memory.edge e JOIN memory.entity n ON n.tenant_id = $1 AND n.id = e.to_id
        WHERE e.tenant_id = $1 AND e.from_id = ANY ($2::text[])
        """,
        tenant_id,
        list(document_ids),
    )
    return [Mention(row["id"], row["from_id"], row["kind"], row["identifier"]) for row in rows]


async def remaining_payloads(
    conn: Connection, tenant_id: str, document_ids: Collection[str]
) -> list[tuple[str, str | bytes]]:
    """Document and payload of each version that is not tombstoned."""
    rows = await conn.fetch(
        """
        SELECT DISTINCT r.document_id, r.raw_text, r.raw_bytes
        FROM memory.version v JOIN memory.raw_capture r ON r.tenant_id = $1 AND r.id = v.raw_capture_id
        WHERE v.tenant_id = $1 AND v.document_id = ANY ($2::text[]) AND v.status <> 'tombstoned'
        """,
        tenant_id,
        list(document_ids),
    )
    return [(row["document_id"], row["raw_bytes"] if row["raw_text"] is None else row["raw_text"]) for row in rows]


async def access_tags(conn: Connection, tenant_id: str, document_ids: Collection[str]) -> dict[str, list[str]]:
    rows = await conn.fetch(
        "SELECT id, access_tags FROM memory.document WHERE tenant_id = $1 AND id = ANY ($2::text[])",
        tenant_id,
        list(document_ids),
    )
    return {row["id"]: row["access_tags"] for row in rows}


async def remove_edges(
    conn: Connection, tenant_id: str, nodes: Collection[str], *, edge_ids: Collection[str] = ()
) -> None:
    """Remove the edges that start or end at these documents and versions, or at chunks of these versions, and those
    given by id; then the entities that nothing names any more."""
    rows = await conn.fetch(
        """
        WITH node (id) AS (
            SELECT unnest($2::text[])
            UNION ALL
            SELECT id FROM memory.chunk WHERE tenant_id = $1 AND version_id = ANY ($2::text[])
        ), wanted (id) AS (
            SELECT e.id FROM node JOIN memory.edge e ON e.tenant_id = $1 AND e.from_id = node.id
            UNION
            SELECT e.id FROM node JOIN memory.edge e ON e.tenant_id = $1 AND e.to_id = node.id
            UNION
            SELECT unnest($3::text[])
        ), removed AS (
            DELETE FROM memory.edge e USING wanted WHERE e.tenant_id = $1 AND e.id = wanted.id
            RETURNING e.from_type, e.from_id, e.to_type, e.to_id
        )
        SELECT from_id AS entity_id FROM removed WHERE from_type = 'entity'
        UNION
        SELECT to_id FROM removed WHERE to_type = 'entity'
        """,
        tenant_id,
        list(nodes),
        list(edge_ids),
    )
    await _remove_orphans(conn, tenant_id, [row["entity_id"] for row in rows])


async def _remove_orphans(conn: Connection, tenant_id: str, entity_ids: Sequence[str]) -> None:
    """Locked first and judged after: a capture that was about to name one of them has then committed its edge."""
    if not entity_ids:
        return
    await conn.execute(
        """
        SELECT FROM memory.entity WHERE tenant_id = $1 AND id = ANY ($2::text[]) ORDER BY kind, identifier FOR UPDATE
        """,
        tenant_id,
        entity_ids,
    )
    await conn.execute(
        """
        DELETE FROM memory.entity n
        WHERE n.tenant_id = $1 AND n.id = ANY ($2::text[])
          AND NOT EXISTS (SELECT FROM memory.edge e WHERE e.tenant_id = $1 AND e.to_id = n.id)
          AND NOT EXISTS (SELECT FROM memory.edge e WHERE e.tenant_id = $1 AND e.from_id = n.id)
        """,
        tenant_id,
        entity_ids,
    )


async def kept_by_durable(conn: Connection, tenant_id: str, document_id: str) -> bool:
    """Whether a durable version of the document is not tombstoned."""
    kept: bool = await conn.fetchval(
        """
        SELECT EXISTS (SELECT FROM memory.version
                       WHERE tenant_id = $1 AND document_id = $2 AND retention_class = 'durable' AND status <> $3)
        """,
        tenant_id,
        document_id,
        VersionStatus.TOMBSTONED,
    )
    return kept


async def delete_document(conn: Connection, tenant_id: str, document_id: str) -> None:
    """The row and, by its foreign keys, everything under it. Edges and share rules have none and go before."""
    await conn.execute("DELETE FROM memory.document WHERE tenant_id = $1 AND id = $2", tenant_id, document_id)
