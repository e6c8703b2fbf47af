"""Tags asked for beyond a claim's audience: one request for each source whose owner is to approve."""

from collections.abc import Sequence

from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.store.database import Connection


async def ask(
    conn: Connection,
    tenant_id: str,
    *,
    document_id: str,
    version_id: str,
    source_version_id: str,
    tags: Sequence[str],
    requested_by: str,
) -> str | None:
    """The id of the new request; None when an open one asks for all of this already."""
    request_id: str | None = await conn.fetchval(
        """
        INSERT INTO memory.audience_request
            (id, tenant_id, document_id, version_id, source_version_id, tags, state, requested_by)
        SELECT $2, $1, $3, $4, $5, $6, 'open', $7
        WHERE NOT EXISTS (
            SELECT FROM memory.audience_request
            WHERE tenant_id = $1 AND document_id = $3 AND version_id = $4 AND source_version_id = $5
              AND state = 'open' AND tags @> $6::text[]
        )
        RETURNING id
        """,
        tenant_id,
        new_id(IdKind.AUDIENCE_REQUEST),
        document_id,
        version_id,
        source_version_id,
        tags,
        requested_by,
    )
    return request_id
