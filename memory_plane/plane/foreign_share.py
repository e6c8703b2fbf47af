"""Share rules for a grant store that is not ours: written after the commit, and told whether they were."""

import logging
from dataclasses import replace

from memory_plane.core.grants import share_rule_id
from memory_plane.plane.capture_request import CaptureRequest
from memory_plane.plane.captured import Captured, ForeignShare
from memory_plane.plane.ports import GrantStore, WritableGrantStore
from memory_plane.store import idempotency
from memory_plane.store.database import Pool, connection
from memory_plane.store.grants import share_rules

_log = logging.getLogger(__name__)


async def share_in_foreign_store(
    pool: Pool, store: GrantStore | None, request: CaptureRequest, captured: Captured
) -> Captured:
    """The capture stands whatever happens here: a rule that could not be written is told, and a retry writes it."""
    share = captured.foreign_share
    if share is None:
        return captured
    tenant = request.caller.tenant_id
    done = isinstance(store, WritableGrantStore) and await _write(store, tenant, share)
    if not share.peers:
        return captured
    if request.keyed:
        async with connection(pool) as conn:
            await idempotency.materialized(conn, tenant, request.caller.principal_id, request.keyed.key, done)
    return replace(captured, grants_materialized=done)


async def _write(store: WritableGrantStore, tenant_id: str, share: ForeignShare) -> bool:
    try:
        for peer in share.dropped:
            await store.revoke(tenant_id, share_rule_id(tenant_id, share.document_id, peer))
        for rule in share_rules(tenant_id, share.document_id, share.version_id, share.shared_by, share.peers):
            await store.put_grant(tenant_id, rule)
    except Exception as failure:  # noqa: BLE001 - a host's store may raise anything, and the add is durable already
        _log.warning("share rules of %s were not written: %s", share.document_id, type(failure).__name__)
        return False
    return True
