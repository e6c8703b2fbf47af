"""The vector tables, one a model: how they are shaped, filled, searched and emptied.

Vectors are `halfvec` at every size. Measured on pgvector 0.8.5 against `vector`: half the table and the index, HNSW
build and query no slower, the same top ten but for near ties; and one type serves all of 64 to 4000 dimensions by an
index. They are stored at unit length: cosine does not see it, and half precision keeps what it can.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from memory_plane.contracts.errors import Invalid
from memory_plane.contracts.recipe import MAX_DIMS, MIN_DIMS
from memory_plane.store.database import SAME, Connection

Vector = NDArray[np.float32]

_TABLE = re.compile(r"^embedding_[a-f0-9]{16}$")

EF_CONSTRUCTION = 128
"""How thoroughly the graph is built. Measured on 211,000 vectors of 384 dimensions, 100,000 of them the tenant's, at
a width of 120: recall@10 against exact is 0.960 with 64 (pgvector's default; one query in 40 found a tenth), 1.000 with
128. Looking further helps less: with 64 it is 0.983 at a width of 400, 0.988 at 800."""
INLINE_BYTES = 6_000
"""Up to this size a vector stays in its row: an exact scan that fetches each from the TOAST table takes four times as
long (measured at 1,024 dimensions). A row must fit an 8 kB page with its keys."""


@dataclass(frozen=True, slots=True)
class SlotVector:
    """The vector of one slot of one chunk; see `core.embed_text` for what the slots hold."""

    chunk_id: str
    slot: int
    vector: Vector


def embedding_table(model_key: str) -> str:
    """The one identifier that is ever spliced into SQL, checked when it is made."""
    return checked_table(f"embedding_{model_key}")


def checked_table(name: str) -> str:
    """`name`, if it is the name of a vector table; checked again whenever one is read back from a row."""
    if not _TABLE.fullmatch(name):
        raise Invalid("The name of a vector table in the registry is not one of ours; repair memory.embed_model.")
    return name


def column_type(dims: int) -> str:
    """Raises Invalid for a size that cannot be indexed."""
    if not MIN_DIMS <= dims <= MAX_DIMS:
        raise Invalid(
            f"The model makes vectors of {dims} dimensions; {MIN_DIMS} to {MAX_DIMS} can be indexed. "
            "Choose another model, or a smaller size of it.",
            code="model_unusable",
        )
    return f"halfvec({dims})"


def index_expression(dims: int) -> str:
    """What the HNSW index is built on, and what `distance_sql` orders by: they must be the same expression."""
    column_type(dims)
    return "embedding"


def distance_sql(dims: int, parameter: str, alias: str = "e") -> str:
    """Cosine distance (0 to 2) of a row to a parameter such as `$1`; ordering by it alone is served by the index."""
    return f"{alias}.{index_expression(dims)} <=> {parameter}::{column_type(dims)}"


def index_name(table: str) -> str:
    return f"{checked_table(table)}_hnsw"


def index_sql(table: str, dims: int, *, concurrently: bool) -> str:
    """Makes the HNSW index; `IF NOT EXISTS` would take an invalid one for made, so it is not said."""
    how = "INDEX CONCURRENTLY" if concurrently else "INDEX"
    return (
        f"CREATE {how} {index_name(table)} ON memory.{checked_table(table)} "
        f"USING hnsw ({index_expression(dims)} halfvec_cosine_ops) WITH (ef_construction = {EF_CONSTRUCTION})"
    )


def table_sql(table: str, dims: int) -> list[str]:
    """Makes the table. The foreign key locks `chunk` against writers for a moment: give it a short lock_timeout."""
    name = checked_table(table)
    statements = [
        f"""
        CREATE TABLE memory.{name} (
            chunk_id text NOT NULL REFERENCES memory.chunk (id) ON DELETE CASCADE,
            slot smallint NOT NULL,
            tenant_id text NOT NULL,
            generation_id text NOT NULL,
            version_id text NOT NULL,
            embedding {column_type(dims)} NOT NULL,
            PRIMARY KEY (chunk_id, slot)
        )
        """,
        f"CREATE INDEX {name}_version ON memory.{name} (tenant_id, generation_id, version_id)",
    ]
    if dims * 2 <= INLINE_BYTES:
        statements.append(f"ALTER TABLE memory.{name} ALTER COLUMN embedding SET STORAGE PLAIN")
    return statements


def as_parameter(vector: Vector) -> HalfVector:
    """A vector as a query parameter: unit length, half precision."""
    wide = vector.astype(np.float64)
    return HalfVector((wide / np.linalg.norm(wide)).astype(np.float16))


async def write(
    conn: Connection,
    tenant_id: str,
    generation_id: str,
    table: str,
    rows: Sequence[SlotVector],
    *,
    version_ids: Collection[str],
    complete: Collection[str],
) -> set[str]:
    """Write vectors of chunks of `version_ids`, in one statement; those of `complete` that are embedded with it.

    Versions that are gone or forgotten get none: their documents are locked first, and a version that was changed
    while a lock was waited for is looked at again (READ COMMITTED does so for rows that are locked). A slot that has
    its vector keeps it: chunks never change, so two embedders of one version write the same.
    """
    name = checked_table(table)
    embedded = await conn.fetch(
        f"""
        WITH held AS MATERIALIZED (
            SELECT v.id FROM memory.version v
            JOIN memory.document d ON d.tenant_id {SAME} $1 AND d.id = v.document_id
            WHERE v.tenant_id {SAME} $1 AND v.id = ANY ($3::text[]) AND v.status <> 'tombstoned'
            ORDER BY d.id, v.id FOR SHARE OF d, v
        ), written AS (
            INSERT INTO memory.{name} (chunk_id, slot, tenant_id, generation_id, version_id, embedding)
            SELECT c.id, given.slot, c.tenant_id, c.generation_id, c.version_id, given.embedding
            FROM unnest($5::text[], $6::smallint[], $7::halfvec[]) AS given (chunk_id, slot, embedding)
            JOIN memory.chunk c ON c.tenant_id {SAME} $1 AND c.id = given.chunk_id
            JOIN held ON held.id = c.version_id
            ON CONFLICT (chunk_id, slot) DO NOTHING
        )
        UPDATE memory.derivation d
        SET embed_state = 'embedded', last_error = NULL, held_until = NULL, updated_at = clock_timestamp()
        FROM held
        WHERE d.tenant_id {SAME} $1 AND d.generation_id {SAME} $2 AND d.version_id = held.id
          AND held.id = ANY ($4::text[]) AND d.embed_state <> 'embedded'
          AND NOT EXISTS (
            SELECT FROM memory.chunk c
            WHERE c.version_id = d.version_id AND c.generation_id = d.generation_id AND c.id <> ALL ($5::text[])
              AND NOT EXISTS (SELECT FROM memory.{name} e WHERE e.chunk_id = c.id AND e.slot = 0)
          )
        RETURNING d.version_id
        """,  # noqa: S608 - the name is checked
        tenant_id,
        generation_id,
        list(version_ids),
        list(complete),
        [row.chunk_id for row in rows],
        [row.slot for row in rows],
        [as_parameter(row.vector) for row in rows],
    )
    return {row["version_id"] for row in embedded}


async def tables_with_dims(conn: Connection) -> list[tuple[str, int]]:
    """All vector tables, each with the size of its vectors."""
    rows = await conn.fetch("SELECT DISTINCT table_name, dims FROM memory.embed_model ORDER BY 1")
    return [(checked_table(row["table_name"]), row["dims"]) for row in rows]


async def tables(conn: Connection) -> list[str]:
    """The names of all vector tables there are."""
    rows = await conn.fetch("SELECT DISTINCT table_name FROM memory.embed_model ORDER BY 1")
    return [checked_table(row["table_name"]) for row in rows]


async def delete_versions(conn: Connection, tenant_id: str, version_ids: Collection[str]) -> int:
    """Delete the vectors of these versions, of every model and generation; their number."""
    deleted = 0
    for name in await tables(conn):
        status: str = await conn.execute(
            f"""
            DELETE FROM memory.{name} e USING memory.chunk c
            WHERE c.tenant_id = $1 AND c.version_id = ANY ($2::text[]) AND e.chunk_id = c.id
            """,  # noqa: S608 - the name is checked
            tenant_id,
            list(version_ids),
        )
        deleted += int(status.rpartition(" ")[2])
    return deleted
