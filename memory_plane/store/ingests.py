"""How the versions of one ingest stand."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_plane.store.database import Connection


@dataclass(frozen=True, slots=True)
class Standing:
    """Under the live generation. `pending` are versions still to be embedded, in the order given; `document_id` is
    the first version's. Forgotten versions count nowhere."""

    document_id: str | None
    pending: list[str]
    chunks: int
    embedded: int
    failed: int
    not_configured: int
    claims: int


async def standing(conn: Connection, tenant_id: str, version_ids: Sequence[str]) -> Standing:
    rows = await conn.fetch(
        """
        SELECT v.id, v.document_id, d.embed_state, coalesce(d.chunk_count, 0) AS chunks,
               (SELECT coalesce(sum(p.claims), 0) FROM memory.process_request p WHERE p.version_id = v.id) AS claims
        FROM unnest($2::text[]) WITH ORDINALITY AS given (id, place)
        JOIN memory.version v ON v.id = given.id AND v.tenant_id = $1 AND v.status <> 'tombstoned'
        LEFT JOIN memory.generation g ON g.tenant_id = $1 AND g.state = 'live'
        LEFT JOIN memory.derivation d ON d.version_id = v.id AND d.generation_id = g.id
        ORDER BY given.place
        """,
        tenant_id,
        version_ids,
    )
    states = [row["embed_state"] for row in rows]
    return Standing(
        document_id=rows[0]["document_id"] if rows else None,
        pending=[row["id"] for row in rows if row["embed_state"] == "pending"],
        chunks=sum(row["chunks"] for row in rows),
        embedded=states.count("embedded"),
        failed=states.count("failed"),
        not_configured=states.count("not_configured"),
        claims=sum(int(row["claims"]) for row in rows),
    )
