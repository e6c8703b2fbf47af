"""The light graph: entities that captures name, and edges from documents and versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_plane.contracts.enums import EdgeRel, EndpointType
from memory_plane.contracts.errors import Unavailable
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.store.database import Connection

_ROUNDS = 5

EntityName = tuple[str, str]
"""(kind, identifier): what makes an entity one entity within its tenant."""


@dataclass(frozen=True, slots=True)
class Edge:
    rel: EdgeRel
    from_type: EndpointType
    from_id: str
    to_type: EndpointType
    to_id: str


async def keep_entities(
    conn: Connection, tenant_id: str, labels: Mapping[EntityName, str | None]
) -> dict[EntityName, str]:
    """The ids of these entities, made where they are missing, and kept from removal until the commit.

    Existing rows are only shared: an entity that everybody mentions must not make everybody wait.
    """
    known: dict[EntityName, str] = {}
    for _ in range(_ROUNDS):
        missing = sorted(labels.keys() - known.keys())
        if not missing:
            return known
        known |= await _share(conn, tenant_id, missing)
        known |= await _insert(conn, tenant_id, {name: labels[name] for name in missing if name not in known})
    raise Unavailable(
        "Entities of this document were removed as fast as they were made; nothing was written. Try again.",
        code="lock_conflict",
        retry_after=1,
    )


async def _share(conn: Connection, tenant_id: str, names: Sequence[EntityName]) -> dict[EntityName, str]:
    """One index look-up a name, in the order given, which is how they are locked."""
    rows = await conn.fetch(
        """
        SELECT e.id, wanted.kind, wanted.identifier
        FROM unnest($2::text[], $3::text[]) AS wanted (kind, identifier)
        CROSS JOIN LATERAL (
            SELECT id FROM memory.entity
            WHERE tenant_id = $1 AND kind = wanted.kind AND identifier = wanted.identifier
            FOR KEY SHARE
        ) AS e
        """,
        tenant_id,
        [kind for kind, _ in names],
        [identifier for _, identifier in names],
    )
    return {(row["kind"], row["identifier"]): row["id"] for row in rows}


async def _insert(conn: Connection, tenant_id: str, labels: Mapping[EntityName, str | None]) -> dict[EntityName, str]:
    """Those that nobody else has inserted meanwhile."""
    if not labels:
        return {}
    rows = await conn.fetch(
        """
        INSERT INTO memory.entity (id, tenant_id, kind, identifier, label)
        SELECT id, $1, kind, identifier, label
        FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS new (id, kind, identifier, label)
        ORDER BY kind, identifier
        ON CONFLICT (tenant_id, kind, identifier) DO NOTHING
        RETURNING id, kind, identifier
        """,
        tenant_id,
        [new_id(IdKind.ENTITY) for _ in labels],
        [kind for kind, _ in labels],
        [identifier for _, identifier in labels],
        list(labels.values()),
    )
    return {(row["kind"], row["identifier"]): row["id"] for row in rows}
