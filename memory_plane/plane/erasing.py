"""Erasing a document and the claims that go with it: all locked first, in one order, and read again under the locks."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from memory_plane.contracts.enums import FeedEventKind
from memory_plane.contracts.errors import Forbidden, NotFound, Unavailable
from memory_plane.core.grants import share_rule_id
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import Access, visible_documents
from memory_plane.plane.audience import named_owners
from memory_plane.plane.mentions import unnamed
from memory_plane.plane.ports import WritableGrantStore
from memory_plane.store import erasure, grants, retention
from memory_plane.store.database import Connection, Pool, in_transaction
from memory_plane.store.feed_events import Event
from memory_plane.store.lexical_statistics import uncount
from memory_plane.store.locks import lock_documents

_log = logging.getLogger(__name__)
T = TypeVar("T")

ROUNDS = 20
"""How often a closure of claims that grows while it is being locked is collected anew."""
SOURCE_FORGOTTEN = "a source was forgotten"


class _Grown(Exception):
    """Claims were added before the locks were held: their documents are to be locked as well."""

    def __init__(self, documents: set[str]) -> None:
        self.documents = documents


@dataclass(frozen=True, slots=True)
class Closure:
    """The document's own versions, and the claims that go with them, each with its document. All are locked."""

    document_id: str
    own: frozenset[str]
    claims: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Erased:
    """The versions that were not tombstoned before, what followers must learn, and the tags that documents had."""

    own: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()
    events: Sequence[Event] = ()
    former_tags: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Erasing:
    def __init__(self, pool: Pool, access: Access) -> None:
        self._pool = pool
        self._access = access

    async def under_locks(
        self, visibility: Visibility, document_id: str, work: Callable[[Connection, Closure], Awaitable[T]]
    ) -> T:
        """Run `work` in one transaction with the document and all claims derived from it locked.

        Raises NotFound for a document that is neither visible nor the caller's own, Forbidden for one that is not
        his own, and Unavailable when claims are added faster than they can be locked.
        """
        tenant = visibility.caller.tenant_id
        wanted: set[str] = set()

        async def attempt(conn: Connection) -> T:
            await _require_own(conn, visibility, document_id)
            documents = wanted or {document_id, *(await erasure.closure(conn, tenant, document_id)).values()}
            if document_id not in await lock_documents(conn, tenant, documents):
                raise _not_found()
            closure = await erasure.closure(conn, tenant, document_id)
            missing = set(closure.values()) - documents
            if missing:
                raise _Grown(documents | missing)
            own = frozenset(version for version, document in closure.items() if document == document_id)
            claims = {version: document for version, document in closure.items() if version not in own}
            return await work(conn, Closure(document_id, own, claims))

        for _ in range(ROUNDS):
            try:
                return await in_transaction(self._pool, attempt)
            except _Grown as grown:
                wanted = grown.documents
        raise Unavailable(
            "Claims are derived from this document faster than they can be locked; nothing was changed. Try again.",
            code="lock_conflict",
            retry_after=1,
        )

    async def forget(self, conn: Connection, tenant_id: str, closure: Closure, reason: str | None) -> Erased:
        """Take from the document and the claims everything they said; ids, times, statuses, classes and who remain."""
        own = await erasure.tombstone(conn, tenant_id, closure.own, reason)
        claims = await erasure.tombstone(conn, tenant_id, closure.claims, SOURCE_FORGOTTEN)
        documents = {closure.document_id, *closure.claims.values()}
        whole, former_tags = await self._erase(conn, tenant_id, {*closure.own, *closure.claims}, documents, set())
        events = [Event(FeedEventKind.FORGOTTEN, closure.document_id)] if own else []
        events += _claim_events(closure.claims, claims, whole)
        return Erased(frozenset(own), frozenset(claims), events, former_tags)

    async def purge(self, conn: Connection, tenant_id: str, closure: Closure) -> Erased:
        """Delete the document with everything under it, and forget the claims."""
        claims = await erasure.tombstone(conn, tenant_id, closure.claims, SOURCE_FORGOTTEN)
        former_tags = await erasure.access_tags(conn, tenant_id, [closure.document_id])
        purged = {closure.document_id, *closure.own}
        whole, tags = await self._erase(conn, tenant_id, set(closure.claims), set(closure.claims.values()), purged)
        await erasure.delete_document(conn, tenant_id, closure.document_id)
        events = [*_claim_events(closure.claims, claims, whole), Event(FeedEventKind.PURGED, closure.document_id)]
        return Erased(frozenset(), frozenset(claims), events, {**tags, **former_tags})

    async def _erase(
        self, conn: Connection, tenant_id: str, versions: set[str], documents: set[str], purged: set[str]
    ) -> tuple[set[str], dict[str, list[str]]]:
        """Erase these tombstoned versions of these documents; of `purged` ids only edges and share rules, which no
        foreign key takes along. The documents of which nothing is left, and the tags they had."""
        await uncount(conn, tenant_id, versions | purged)
        await erasure.erase_derived(conn, tenant_id, versions)
        await erasure.erase_payloads(conn, tenant_id, documents)
        whole = await erasure.forgotten_among(conn, tenant_id, documents)
        partly = documents - whole
        former_tags = await erasure.access_tags(conn, tenant_id, whole)
        await erasure.redact_documents(conn, tenant_id, whole)
        await erasure.show_remaining_version(conn, tenant_id, partly)
        gone = await unnamed(conn, tenant_id, partly) if partly else []
        # Entities, then grants: the global order of locks.
        await erasure.remove_edges(conn, tenant_id, whole | versions | purged, edge_ids=gone)
        await grants.revoke_share_rules(conn, tenant_id, whole | purged)
        return whole, former_tags

    async def unshare_elsewhere(self, tenant_id: str, erased: Erased) -> None:
        """Revoke share rules in a host's own store. A rule that stays there shows nothing: the tag it is on is gone."""
        store = self._access.grant_store
        if not isinstance(store, WritableGrantStore) or self._access.writes_grants_in(self._pool):
            return
        for document_id, tags in erased.former_tags.items():
            for peer in sorted(named_owners(tags)):
                try:
                    await store.revoke(tenant_id, share_rule_id(tenant_id, document_id, peer))
                except Exception as failure:  # noqa: BLE001 - a host's store may raise anything, and it is forgotten
                    _log.warning("a share rule of %s was not revoked: %s", document_id, type(failure).__name__)


async def _require_own(conn: Connection, visibility: Visibility, document_id: str) -> None:
    creator = await retention.document_creator(conn, visibility.caller.tenant_id, document_id)
    if creator == visibility.caller.principal_id:
        return
    if creator is None or document_id not in await visible_documents(conn, visibility, [document_id]):
        raise _not_found()
    raise Forbidden("Only the creator of this document may do this.", code="not_document_owner")


def _claim_events(claims: Mapping[str, str], ended: Collection[str], whole: Collection[str]) -> list[Event]:
    """One for each document that has ended, one for each version of a document that goes on without it."""
    documents = {claims[version] for version in ended}
    return [
        *(Event(FeedEventKind.FORGOTTEN, document) for document in sorted(documents.intersection(whole))),
        *(
            Event(FeedEventKind.FORGOTTEN, claims[version], version)
            for version in sorted(ended)
            if claims[version] not in whole
        ),
    ]


def _not_found() -> NotFound:
    return NotFound("There is no such document, or it is not yours to see.")
