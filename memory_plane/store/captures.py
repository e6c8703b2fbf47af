"""The rows of one accepted capture, written by one statement; its events follow in the transaction's last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_plane.contracts.enums import (
    CreatedByKind,
    EmbedState,
    Lineage,
    Provenance,
    RetentionClass,
    TemporalClass,
)
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.store import idempotency
from memory_plane.store.database import Connection
from memory_plane.store.documents import NewDocument
from memory_plane.store.graph import Edge
from memory_plane.store.idempotency import KeyedBody


@dataclass(frozen=True, slots=True)
class RawCapture:
    """The exact accepted payload: as text, or as bytes where PostgreSQL cannot hold it as text."""

    source_hash: str
    text: str | None
    content: bytes | None


@dataclass(frozen=True, slots=True)
class NewVersion:
    """One accepted capture. `occurred_at` None: the moment it is written."""

    id: str
    tenant_id: str
    document_id: str
    number: int
    supersedes_version_id: str | None
    title: str
    kind: str
    content_hash: str
    occurred_at: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None
    temporal_class: TemporalClass
    retention_class: RetentionClass
    provenance: Provenance
    lineage: Lineage
    created_by: str
    created_by_kind: CreatedByKind
    generator_agent_id: str | None
    authority: float
    actor_count: int
    has_social_signal: bool
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewChunk:
    id: str
    text: str
    context: str
    grams: str
    span_start: int
    span_end: int
    token_count: int
    role: str | None


@dataclass(frozen=True, slots=True)
class Derived:
    """What was derived from the version under one generation. Its embed state is the durable intent to embed."""

    generation_id: str
    embed_state: EmbedState
    chunks: Sequence[NewChunk]


# One statement: the rows depend on nothing that is read, and a round trip costs as much as the rows of a small add.
_ROWS = f"""
WITH moment AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), raw AS (
    INSERT INTO memory.raw_capture (id, tenant_id, document_id, source_hash, adapter, raw_text, raw_bytes, fetched_at)
    SELECT $24, $2, $3, $25, $26, $27, $28, now FROM moment WHERE $25::text IS NOT NULL
), version AS (
    INSERT INTO memory.version
        (id, tenant_id, document_id, version, status, status_at, supersedes_version_id, title, kind, content_hash,
         occurred_at, ingested_at, valid_from, valid_until, temporal_class, retention_class, provenance, source_class,
         created_by_principal_id, created_by_kind, generator_agent_id, authority, actor_count, has_social_signal,
         attributes, raw_capture_id)
    SELECT $1, $2, $3, $4, 'active', now, $5, $6, $7, $8,
           coalesce($9, now), now, $10, $11, $12, $13, $14, $15,
           $16, $17, $18, $19, $20, $21,
           $22, $24 FROM moment
), chunk AS (
    INSERT INTO memory.chunk
        (id, tenant_id, generation_id, document_id, version_id, ordinal, text, context, grams,
         span_start, span_end, token_count, role)
    SELECT c.id, $2, $23, $3, $1, c.number - 1, c.text, c.context, c.grams,
           c.span_start, c.span_end, c.token_count, c.role
    FROM unnest($29::text[], $30::text[], $31::text[], $32::text[], $33::int[], $34::int[], $35::int[], $36::text[])
        WITH ORDINALITY AS c (id, text, context, grams, span_start, span_end, token_count, role, number)
), edge AS (
    INSERT INTO memory.edge (id, tenant_id, rel, from_type, from_id, to_type, to_id)
    SELECT e.id, $2, e.rel, e.from_type, e.from_id, e.to_type, e.to_id
    FROM unnest($37::text[], $38::text[], $39::text[], $40::text[], $41::text[], $42::text[])
        AS e (id, rel, from_type, from_id, to_type, to_id)
    ON CONFLICT (tenant_id, rel, from_id, to_id) DO NOTHING
), process AS (
    INSERT INTO memory.process_request (version_id, processor, tenant_id, state)
    SELECT $1, processor, $2, 'pending' FROM unnest($43::text[]) AS processor
), answer AS (
    {idempotency.remembering("$2", "$3", "$1", first=45)}
), derivation AS (
    INSERT INTO memory.derivation (version_id, generation_id, tenant_id, chunk_count, embed_state)
    VALUES ($1, $23, $2, cardinality($29::text[]), $44)
)"""  # noqa: S608 - built from constants
_WRITE = f"{_ROWS} SELECT"
_WRITE_NEW = f"""{_ROWS}, document AS (
    INSERT INTO memory.document
        (id, tenant_id, adapter, external_ref, title, kind, access_tags, attributes,
         created_by_principal_id, occurred_at, is_claim, created_at, last_seen_at)
    SELECT $3, $2, $26, $51, $6, $7, $52, $22, $16, coalesce($9, now), $53, now, now FROM moment
)
SELECT id, xmin::text AS stamp FROM memory.generation WHERE tenant_id = $2 AND state = 'live'
"""  # noqa: S608 - built from constants


async def write(
    conn: Connection,
    version: NewVersion,
    derived: Derived,
    *,
    raw_capture_id: str,
    adapter: str,
    raw: RawCapture | None,
    edges: Sequence[Edge],
    processors: Sequence[str],
    keyed: KeyedBody | None,
    grants_materialized: bool | None,
    document: NewDocument | None = None,
) -> tuple[str, str] | None:
    """Write the version with everything that hangs on it. `raw` None: the row of that id is reused.

    The document's lock is held, its active version has been superseded, and the entities that edges end at exist.
    Or it is `document`, of a name that nobody else can have, and is written with the rest: then what is returned is
    the live generation, as `LockedDocument.live` has it, to be compared before the commit.
    """
    arguments = _arguments(
        version,
        derived,
        raw_capture_id=raw_capture_id,
        adapter=adapter,
        raw=raw,
        edges=edges,
        processors=processors,
        answer=idempotency.arguments(keyed, "captured", grants_materialized),
    )
    if document is None:
        await conn.execute(_WRITE, *arguments)
        return None
    face = (document.external_ref, document.access_tags, document.is_claim)
    live = await conn.fetchrow(_WRITE_NEW, *arguments, *face)
    return None if live is None else (live["id"], live["stamp"])


def _arguments(
    version: NewVersion,
    derived: Derived,
    *,
    raw_capture_id: str,
    adapter: str,
    raw: RawCapture | None,
    edges: Sequence[Edge],
    processors: Sequence[str],
    answer: tuple[object, ...],
) -> tuple[object, ...]:
    """The values of `_ROWS`, in its order."""
    chunks = derived.chunks
    return (
        version.id,
        version.tenant_id,
        version.document_id,
        version.number,
        version.supersedes_version_id,
        version.title,
        version.kind,
        version.content_hash,
        version.occurred_at,
        version.valid_from,
        version.valid_until,
        version.temporal_class,
        version.retention_class,
        version.provenance,
        version.lineage,
        version.created_by,
        version.created_by_kind,
        version.generator_agent_id,
        version.authority,
        version.actor_count,
        version.has_social_signal,
        version.attributes,
        derived.generation_id,
        raw_capture_id,
        raw.source_hash if raw else None,
        adapter,
        raw.text if raw else None,
        raw.content if raw else None,
        [chunk.id for chunk in chunks],
        [chunk.text for chunk in chunks],
        [chunk.context for chunk in chunks],
        [chunk.grams for chunk in chunks],
        [chunk.span_start for chunk in chunks],
        [chunk.span_end for chunk in chunks],
        [chunk.token_count for chunk in chunks],
        [chunk.role for chunk in chunks],
        [new_id(IdKind.EDGE) for _ in edges],
        [edge.rel for edge in edges],
        [edge.from_type for edge in edges],
        [edge.from_id for edge in edges],
        [edge.to_type for edge in edges],
        [edge.to_id for edge in edges],
        processors,
        derived.embed_state,
        *answer,
    )
