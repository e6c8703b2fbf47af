"""A later run of a processor that claims less than an earlier one: the claims beyond are taken back."""

from memory_plane.contracts.enums import FeedEventKind
from memory_plane.store import claims, locks, retention
from memory_plane.store.database import Connection
from memory_plane.store.feed_events import Event

FEWER = "a later run wrote fewer claims"


async def lock_claims(conn: Connection, tenant_id: str, agent_id: str, source_version_id: str) -> None:
    """Lock what the agent has claimed of this source for change, and the source against it, all in one order."""
    source = await claims.document_of(conn, tenant_id, source_version_id)
    before = await claims.claims_of(conn, tenant_id, agent_id, source_version_id)
    own = {claim.document_id for claim in before}
    await locks.lock_among(conn, tenant_id, own, {source} if source is not None else set())


async def withdraw_claims(
    conn: Connection, tenant_id: str, agent_id: str, source_version_id: str, kept: int
) -> list[Event]:
    """Deprecate what the agent has claimed of this source under numbers from `kept` on; the events to append. To be
    called under `lock_claims`."""
    events = []
    for claim in await claims.claims_of(conn, tenant_id, agent_id, source_version_id):
        if claim.number < kept or claim.version_id is None:
            continue
        if await retention.deprecate(conn, tenant_id, claim.version_id, FEWER):
            events.append(Event(FeedEventKind.DEPRECATED, claim.document_id, claim.version_id))
    return events
