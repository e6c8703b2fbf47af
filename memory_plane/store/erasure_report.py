"""What is left of a document, searched for in every table of the catalog, so that no table can be left out.

A row belongs to the document when one of its id columns names it, one of its versions, chunks or raw captures, or an
entity at one of its edges. Whatever stands in such a row and is not known to say nothing counts as content: a column
added tomorrow is reported until somebody has judged it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from memory_plane.store.database import Connection
from memory_plane.store.erasure import REDACTED

SAYS_NOTHING = frozenset(
    (
        "adapter", "external_ref", "status", "status_reason", "state", "created_by_kind", "provenance", "source_class",
        "temporal_class", "retention_class", "embed_state", "rel", "from_type", "to_type", "processor", "requested_by",
        "approved_by", "action", "effect", "origin", "body_hash", "key",
    )
)  # fmt: skip
"""Columns for ids, statuses, classes and who, in whichever table; those whose names end in `id` are among them."""
SAYS_NOTHING_IN: Mapping[str, frozenset[str]] = {
    "feed_event": frozenset({"kind"}),
    "chunk": frozenset({"text_fts"}),  # generated from text, context and grams, which are judged
    "grant_rule": frozenset({"resource", "conditions"}),
}
_SILENT_TYPES = ("int2", "int4", "int8", "float4", "float8", "bool", "timestamptz")
_TEXT_TYPES = ("text", "varchar", "bpchar")


@dataclass(frozen=True, slots=True)
class TableFinding:
    """`content` counts, by column, rows that still say something; `generations`, where the table knows them, all rows
    by generation."""

    table: str
    rows: int = 0
    content: Mapping[str, int] = field(default_factory=dict)
    generations: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ErasureReport:
    document_id: str
    tenant_id: str
    statuses: Mapping[str, int]
    """How many versions have which status; empty once purged."""
    tables: tuple[TableFinding, ...]

    @property
    def is_erased(self) -> bool:
        return not any(table.content for table in self.tables)


async def erasure_report(conn: Connection, document_id: str) -> ErasureReport | None:
    """None where no table has heard of the document."""
    tenant_id: str | None = await conn.fetchval(
        """
        SELECT tenant_id FROM memory.document WHERE id = $1
        UNION ALL SELECT tenant_id FROM memory.feed_event WHERE document_id = $1 LIMIT 1
        """,
        document_id,
    )
    if tenant_id is None:
        return None
    ids = await _ids(conn, tenant_id, document_id)
    statuses = await conn.fetch(
        "SELECT status, count(*) AS number FROM memory.version WHERE tenant_id = $1 AND document_id = $2 GROUP BY 1",
        tenant_id,
        document_id,
    )
    columns = await _columns(conn)
    return ErasureReport(
        document_id=document_id,
        tenant_id=tenant_id,
        statuses={row["status"]: row["number"] for row in statuses},
        tables=tuple([await _search(conn, table, columns[table], ids, document_id) for table in sorted(columns)]),
    )


async def _ids(conn: Connection, tenant_id: str, document_id: str) -> list[str]:
    """All ids by which rows may know the document; those of versions also from events, which outlive them."""
    rows = await conn.fetch(
        """
        WITH version (id) AS (
            SELECT id FROM memory.version WHERE tenant_id = $1 AND document_id = $2
            UNION SELECT version_id FROM memory.feed_event
                  WHERE tenant_id = $1 AND document_id = $2 AND version_id IS NOT NULL
        ), thing (id) AS (
            SELECT $2 UNION SELECT id FROM version
            UNION SELECT id FROM memory.raw_capture WHERE tenant_id = $1 AND document_id = $2
            UNION SELECT c.id FROM memory.chunk c JOIN version v ON c.tenant_id = $1 AND c.version_id = v.id
        )
        SELECT id FROM thing
        UNION
        SELECT e.to_id FROM thing t JOIN memory.edge e ON e.tenant_id = $1 AND e.from_id = t.id AND e.to_type = 'entity'
        """,
        tenant_id,
        document_id,
    )
    return [row["id"] for row in rows]


async def _columns(conn: Connection) -> dict[str, dict[str, str]]:
    """Types of columns by table and name. From pg_catalog: information_schema hides what a role may not read."""
    rows = await conn.fetch(
        """
        SELECT c.relname AS table_name, a.attname AS column_name, t.typname AS type_name
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'memory'
        JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
        WHERE c.relkind IN ('r', 'p') ORDER BY 1, a.attnum
        """
    )
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        found.setdefault(row["table_name"], {})[row["column_name"]] = row["type_name"]
    return found


async def _search(
    conn: Connection, table: str, columns: Mapping[str, str], ids: Collection[str], document_id: str
) -> TableFinding:
    keys = [name for name, kind in columns.items() if kind in _TEXT_TYPES and _is_key(name)]
    related = [f"{_quoted(name)} = ANY ($1::text[])" for name in keys]
    values: list[object] = [list(ids)]
    if table == "grant_rule":
        related.append("resource = $2")
        values.append(f"memory.doc:{document_id}")
    if not related:
        return TableFinding(table)
    judged = [name for name, kind in columns.items() if not _says_nothing(table, name, kind)]
    counts = ", ".join(["count(*)", *(f"count(*) FILTER (WHERE {_speaks(name, columns[name])})" for name in judged)])
    source = f"FROM memory.{_quoted(table)} WHERE {' OR '.join(related)}"
    row = await conn.fetchrow(f"SELECT {counts} {source}", *values)
    assert row is not None, "a count makes a row"  # noqa: S101
    rows, *spoken = tuple(row)
    generations = {}
    if rows and "generation_id" in columns:
        per = await conn.fetch(f"SELECT generation_id, count(*) AS number {source} GROUP BY 1 ORDER BY 1", *values)
        generations = {each["generation_id"]: each["number"] for each in per}
    content = {name: number for name, number in zip(judged, spoken, strict=True) if number}
    return TableFinding(table, rows, content, generations)


def _is_key(name: str) -> bool:
    return name == "id" or name.endswith("_id")


def _says_nothing(table: str, name: str, kind: str) -> bool:
    return (
        kind in _SILENT_TYPES
        or (kind in _TEXT_TYPES and (_is_key(name) or name in SAYS_NOTHING))
        or name in SAYS_NOTHING_IN.get(table, ())
    )


def _speaks(name: str, kind: str) -> str:
    """Whether a value of that column says anything, as SQL."""
    column = _quoted(name)
    if kind in _TEXT_TYPES:
        return f"{column} IS NOT NULL AND {column} NOT IN ('', '{REDACTED}') AND {column} NOT LIKE 'forgotten:%'"
    if kind == "jsonb":
        return f"{column} IS NOT NULL AND {column} NOT IN ('{{}}', 'null')"
    if kind == "_text":
        return f"EXISTS (SELECT FROM unnest({column}) AS one WHERE one NOT LIKE 'memory.owner:%')"
    return f"{column} IS NOT NULL"


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
