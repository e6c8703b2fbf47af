"""How a memory ends: forgotten, purged, deprecated, past its time. Each of these is final for everything derived."""

import time

from memory_plane.contracts.enums import FeedEventKind, RetentionClass, Verb, VersionStatus
from memory_plane.contracts.errors import Conflict, Forbidden, NotFound
from memory_plane.contracts.wire import ForgetResponse, PurgeResponse, RetentionClassResponse
from memory_plane.contracts.workflows import SweepPageResult
from memory_plane.core.text import clean_text
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import Access, visible_versions
from memory_plane.plane.erasing import Closure, Erased, Erasing
from memory_plane.store import erasure, retention, versions
from memory_plane.store.database import Connection, Pool, connection, in_transaction
from memory_plane.store.feed_events import Event, append_events
from memory_plane.store.locks import lock_documents

SWEEP_BATCH = 500
SWEEP_TENANTS = 100
SWEEP_SECONDS = 10.0
"""How long one page of a sweep goes on; the next goes on from there."""


class Retention:
    def __init__(self, pool: Pool, access: Access) -> None:
        self._pool = pool
        self._access = access
        self._erasing = Erasing(pool, access)

    async def forget(self, visibility: Visibility, document_id: str, reason: str | None = None) -> ForgetResponse:
        """Erase everything the document said, and every claim derived from it. Idempotent. `reason` is kept.

        Raises NotFound for what is neither visible nor the caller's own, Forbidden for what is not his own.
        """
        self._access.require(visibility, Verb.FORGET)
        kept = None if reason is None else clean_text(reason)

        tenant = visibility.caller.tenant_id

        async def work(conn: Connection, closure: Closure) -> Erased:
            erased = await self._erasing.forget(conn, tenant, closure, kept)
            await append_events(conn, tenant, erased.events)
            return erased

        erased = await self._erasing.under_locks(visibility, document_id, work)
        await self._erasing.unshare_elsewhere(tenant, erased)
        return ForgetResponse(document_id=document_id, versions=len(erased.own), derived_forgotten=len(erased.claims))

    async def purge(self, visibility: Visibility, document_id: str) -> PurgeResponse:
        """Delete the document and everything under it; claims derived from it are forgotten. Refused, with a reason
        and nothing changed, while a durable version is not tombstoned. Raises as `forget` does."""
        self._access.require(visibility, Verb.PURGE)
        tenant = visibility.caller.tenant_id

        async def work(conn: Connection, closure: Closure) -> Erased | None:
            if await erasure.kept_by_durable(conn, tenant, document_id):
                return None
            erased = await self._erasing.purge(conn, tenant, closure)
            await append_events(conn, tenant, erased.events)
            return erased

        erased = await self._erasing.under_locks(visibility, document_id, work)
        if erased is None:
            return PurgeResponse(
                document_id=document_id,
                deleted=False,
                reason="A version of the durable class is not forgotten yet; forget the document first, or give the "
                "version another retention class.",
            )
        await self._erasing.unshare_elsewhere(tenant, erased)
        return PurgeResponse(document_id=document_id, deleted=True)

    async def set_retention_class(
        self, visibility: Visibility, version_id: str, retention_class: RetentionClass
    ) -> RetentionClassResponse:
        """Set the class of one version. Only its creator may; else raises as `forget` does."""
        self._access.require(visibility, Verb.FORGET)
        tenant = visibility.caller.tenant_id

        async def work(conn: Connection) -> RetentionClassResponse:
            found = await retention.version_state(conn, tenant, version_id)
            if found is None:
                raise _not_found("version")
            if found.created_by != visibility.caller.principal_id:
                if version_id not in await visible_versions(conn, visibility, [version_id]):
                    raise _not_found("version")
                raise Forbidden("Only the creator of this version may set its class.", code="not_version_creator")
            await lock_documents(conn, tenant, [found.document_id])
            state = await retention.version_state(conn, tenant, version_id)
            if state is None:
                raise _not_found("version")
            if state.retention_class != retention_class:
                await versions.reclass(conn, tenant, version_id, retention_class)
                await append_events(conn, tenant, [Event(FeedEventKind.RECLASSED, state.document_id, version_id)])
            return RetentionClassResponse(version_id=version_id, document_id=state.document_id, status=state.status)

        return await in_transaction(self._pool, work)

    async def deprecate(self, tenant_id: str, version_id: str, reason: str | None = None) -> VersionStatus:
        """Take an active or superseded version out of search; an operator's verb. Idempotent. Raises NotFound, and
        Conflict for a version that has ended otherwise."""

        async def work(conn: Connection) -> VersionStatus:
            found = await retention.version_state(conn, tenant_id, version_id)
            if found is None:
                raise _not_found("version")
            await lock_documents(conn, tenant_id, [found.document_id])
            kept = None if reason is None else clean_text(reason)
            if await retention.deprecate(conn, tenant_id, version_id, kept):
                await append_events(conn, tenant_id, [Event(FeedEventKind.DEPRECATED, found.document_id, version_id)])
                return VersionStatus.DEPRECATED
            state = await retention.version_state(conn, tenant_id, version_id)
            if state is None:
                raise _not_found("version")
            if state.status is not VersionStatus.DEPRECATED:
                raise Conflict(f"This version is {state.status.value}; only active and superseded ones are deprecated.")
            return state.status

        return await in_transaction(self._pool, work)

    async def sweep_page(self, tenant_id: str | None, after: str) -> SweepPageResult:
        """Sweep one tenant, or all from behind `after`, for about SWEEP_SECONDS; where it has come and what it did."""
        deprecated = 0
        deadline = time.monotonic() + SWEEP_SECONDS
        for tenant in [tenant_id] if tenant_id is not None else await self._tenants_to_sweep(after):
            while swept := await self.sweep_batch(tenant):
                deprecated += swept
                if time.monotonic() > deadline:
                    return SweepPageResult(after=after, deprecated=deprecated)
            after = tenant
        done = tenant_id is not None or not await self._tenants_to_sweep(after)
        return SweepPageResult(after=after, done=done, deprecated=deprecated)

    async def _tenants_to_sweep(self, after: str) -> list[str]:
        async with connection(self._pool) as conn:
            return await retention.tenants_with_expired(conn, after, SWEEP_TENANTS)

    async def sweep(self, tenant_id: str | None = None) -> int:
        """Deprecate what is past its time in this tenant, or in all, batch by batch; how many versions."""
        page = SweepPageResult()
        total = 0
        while not page.done:
            page = await self.sweep_page(tenant_id, page.after)
            total += page.deprecated
        return total

    async def sweep_batch(self, tenant_id: str, limit: int = SWEEP_BATCH) -> int:
        """Deprecate at most `limit` ephemeral versions that are past their time; how many. 0: none is left, or
        another sweeper has them."""

        async def work(conn: Connection) -> int:
            documents = await retention.expired_documents(conn, tenant_id, limit)
            if not documents:
                return 0
            await lock_documents(conn, tenant_id, documents)
            ended = await retention.deprecate_expired(conn, tenant_id, documents)
            await append_events(
                conn, tenant_id, [Event(FeedEventKind.DEPRECATED, document, version) for document, version in ended]
            )
            return len(ended)

        return await in_transaction(self._pool, work)


def _not_found(what: str) -> NotFound:
    return NotFound(f"There is no such {what}, or it is not yours to see.")
