"""Audience widening: a claim is written with what its sources allow, and their owners decide about the rest."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from memory_plane.contracts.enums import FeedEventKind, VersionStatus, WideningState
from memory_plane.contracts.errors import Conflict, Forbidden, NotFound
from memory_plane.core.access_tags import document_tag
from memory_plane.core.grants import GrantRule
from memory_plane.plane.access import Access
from memory_plane.plane.audience import named_owners
from memory_plane.plane.ports import WideningStarter, WorkflowStarter, WritableGrantStore
from memory_plane.store import documents, grants, widening
from memory_plane.store.database import Connection, Pool, connection, in_transaction
from memory_plane.store.feed_events import Event, append_events
from memory_plane.store.locks import lock_with_sources
from memory_plane.store.widening import AudienceRequest, Claim

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a request stands; no tag is told, only how many there are."""

    request_id: str
    document_id: str
    version_id: str
    source_version_id: str
    tags: int
    state: WideningState


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request with the principal who decides it."""

    request: AudienceRequest
    owner: str


class Widening:
    def __init__(self, pool: Pool, access: Access, starter: WorkflowStarter | None) -> None:
        self._pool = pool
        self._access = access
        self._starter = starter

    async def wait_for(self, tenant_id: str, request_id: str) -> Standing | None:
        """How the request stands, noting that its workflow waits for it; None where it is gone, as after a forget."""
        async with connection(self._pool) as conn:
            await widening.mark_seen(conn, tenant_id, request_id)
            found = await widening.request(conn, tenant_id, request_id)
        return None if found is None else _standing(found, found.state)

    async def open_requests(self, tenant_id: str) -> list[OpenRequest]:
        async with connection(self._pool) as conn:
            return [OpenRequest(asked, owner) for asked, owner in await widening.open_requests(conn, tenant_id)]

    async def start_waiting(self, older_than: timedelta, limit: int) -> int:
        """Start the workflows of open requests that have none; how many. Raises Unavailable without Temporal."""
        if not isinstance(self._starter, WideningStarter):
            return 0
        async with connection(self._pool) as conn:
            unseen = await widening.unseen(conn, older_than, limit)
        for tenant_id, request_id in unseen:
            await self._starter.start_widening(tenant_id, request_id)
        return len(unseen)

    async def decide(self, tenant_id: str, request_id: str, principal_id: str, *, approve: bool) -> Standing:
        """Approve or decline for the owner of the source. The same decision again changes nothing.

        Approved tags go on the claim as soon as the owner of each source that lacks them has approved. Raises NotFound,
        Forbidden for anybody but the owner, Conflict when it is decided otherwise or the claim is not active any more.
        """
        wanted = WideningState.APPROVED if approve else WideningState.DECLINED

        async def work(conn: Connection) -> tuple[Standing, Sequence[GrantRule]]:
            asked = await widening.request(conn, tenant_id, request_id)
            if asked is None:
                raise _gone()
            sources = await widening.source_documents(conn, tenant_id, asked.version_id)
            await lock_with_sources(conn, tenant_id, asked.document_id, sources)
            asked = await widening.request(conn, tenant_id, request_id)
            claim = None if asked is None else await widening.claim(conn, tenant_id, asked.version_id)
            if asked is None or claim is None:
                raise _gone()
            _require_owner(claim, asked, principal_id)
            if asked.state is wanted:
                return _standing(asked, wanted), ()
            _require_open(claim, asked)
            await widening.decide(conn, asked, wanted, principal_id)
            rules = await self._widen(conn, asked) if approve else ()
            return _standing(asked, wanted), rules

        standing, rules = await in_transaction(self._pool, work)
        await self._share_elsewhere(tenant_id, rules)
        return standing

    async def _widen(self, conn: Connection, asked: AudienceRequest) -> Sequence[GrantRule]:
        """Append what is now approved by all; the rules that its peers get."""
        claim = await widening.claim(conn, asked.tenant_id, asked.version_id)
        assert claim is not None, "it is locked"  # noqa: S101
        added = [tag for tag in widening.covered(claim, asked.tags) if tag not in claim.tags]
        if not added:
            return ()
        peers = named_owners(added) - {claim.creator}
        own_tag = [document_tag(claim.document_id)] if peers else []
        tags = list(dict.fromkeys([*claim.tags, *added, *own_tag]))
        await documents.retag(conn, asked.tenant_id, claim.document_id, tags)
        rules = grants.share_rules(asked.tenant_id, claim.document_id, asked.version_id, asked.requested_by, peers)
        if rules and self._access.writes_grants_in(self._pool):
            await grants.put_rules(conn, asked.tenant_id, rules)
        kinds = (FeedEventKind.RETAGGED, FeedEventKind.SHARED)
        await append_events(conn, asked.tenant_id, [Event(kind, claim.document_id) for kind in kinds])
        return rules

    async def _share_elsewhere(self, tenant_id: str, rules: Sequence[GrantRule]) -> None:
        """In a host's own store, after the commit. The tags alone admit a peer who is denied nothing."""
        store = self._access.grant_store
        if not isinstance(store, WritableGrantStore) or self._access.writes_grants_in(self._pool):
            return
        for rule in rules:
            try:
                await store.put_grant(tenant_id, rule)
            except Exception as failure:  # noqa: BLE001 - a host's store may raise anything, and it is decided
                _log.warning("a share rule was not written: %s", type(failure).__name__)


def _require_owner(claim: Claim, asked: AudienceRequest, principal_id: str) -> None:
    owners = {source.owner for source in claim.sources if source.version_id == asked.source_version_id}
    if principal_id not in owners:
        raise Forbidden(
            "Only the creator of the source's document decides who may see what was made of it.",
            code="not_source_owner",
        )


def _require_open(claim: Claim, asked: AudienceRequest) -> None:
    if asked.state is not WideningState.OPEN:
        raise Conflict(f"This request is {asked.state.value} already; ask anew.", code="already_decided")
    if claim.status is not VersionStatus.ACTIVE:
        raise Conflict(
            f"The claim is {claim.status.value}; what takes its place asks for itself.", code="claim_not_active"
        )


def _standing(asked: AudienceRequest, state: WideningState) -> Standing:
    return Standing(
        request_id=asked.id,
        document_id=asked.document_id,
        version_id=asked.version_id,
        source_version_id=asked.source_version_id,
        tags=len(asked.tags),
        state=state,
    )


def _gone() -> NotFound:
    return NotFound("There is no such audience request; it may have gone with its claim.")
