"""Capture: an add becomes durable, exactly once, under any concurrency and any retry."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from memory_plane.contracts.errors import Unavailable
from memory_plane.contracts.wire import AddFields
from memory_plane.core.planning import CapturePlan, plan
from memory_plane.core.source_document import SourceDocument
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import Access
from memory_plane.plane.capture_request import CaptureRequest, capture_request
from memory_plane.plane.capture_transaction import CaptureTransaction, LiveGenerationMoved, StartOver
from memory_plane.plane.captured import Captured
from memory_plane.plane.foreign_share import share_in_foreign_store
from memory_plane.settings import Settings
from memory_plane.store import idempotency
from memory_plane.store.database import Connection, Pool, connection, in_transaction
from memory_plane.store.feed_events import Event, append_events
from memory_plane.store.live_generation import LiveGeneration, live_generation, make_first_generation
from memory_plane.store.versions import Remaining, remaining

T = TypeVar("T")

ATTEMPTS = 5
LONG_TEXT_CHARS = 50_000
"""Longer ones are planned in a thread, so that others are served meanwhile."""
MOST_TENANTS_REMEMBERED = 10_000


class Within(Protocol):
    """What else belongs to the transaction of captures that stand or fall together. It may be run more than once."""

    async def begin(self, conn: Connection) -> bool:
        """Before them: take the locks that come first. False: there is nothing to write any more."""
        ...

    async def end(self, conn: Connection) -> Sequence[Event]:
        """After them; the events to append with theirs."""
        ...


class Capture:
    """`processors` are the names that `process` may ask for; None takes any."""

    def __init__(
        self, pool: Pool, settings: Settings, access: Access, *, processors: Collection[str] | None = None
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._access = access
        self._processors = processors
        self._live: dict[str, LiveGeneration] = {}
        self._hash_key: bytes | None = None

    async def capture(
        self,
        visibility: Visibility,
        item: AddFields,
        *,
        payload: Any,
        over_http: bool = True,
        idempotency_key: str | None = None,
    ) -> Captured:
        """Capture one document for the caller; durable once this returns.

        `payload` is the JSON as it was sent, and is kept as it is. Raises Invalid, Forbidden, Conflict, KeyReused, and
        Unavailable when the database cannot promise anything.
        """
        request = capture_request(
            visibility.caller,
            item,
            payload,
            over_http=over_http,
            key=idempotency_key,
            hash_key=await self._key_of_hashes() if idempotency_key is not None else b"",
            known_processors=self._processors,
        )
        captured = await self._run(visibility, request)
        if captured.foreign_share is None:
            return captured
        return await share_in_foreign_store(self._pool, self._access.grant_store, request, captured)

    async def capture_together(
        self, visibility: Visibility, items: Sequence[AddFields], within: Within
    ) -> list[Captured] | None:
        """Capture several documents of our own making in one transaction: all of them, or none.

        `within` adds to it; None when it did not let them begin. Raises as `capture` does.
        """
        requests = [
            capture_request(
                visibility.caller,
                item,
                item.model_dump(mode="json", exclude_unset=True),
                over_http=False,
                key=None,
                hash_key=b"",
                known_processors=self._processors,
            )
            for item in items
        ]
        tenant = visibility.caller.tenant_id
        ours = self._access.writes_grants_in(self._pool)

        async def attempt(live: LiveGeneration) -> list[Captured] | None:
            plans = [await _plan(request.document, live) for request in requests]

            async def work(conn: Connection) -> list[Captured] | None:
                if not await within.begin(conn):
                    return None
                events: list[Event] = []
                captured = [
                    await CaptureTransaction(conn, visibility, request, planned, live, ours, events).run()
                    for request, planned in zip(requests, plans, strict=True)
                ]
                events += await within.end(conn)
                await append_events(conn, tenant, events)
                return captured

            return await in_transaction(self._pool, work)

        return await self._settled(tenant, attempt)

    async def remaining(self, tenant_id: str, version_id: str) -> Remaining | None:
        """How a captured version stands now; None when it is gone."""
        async with connection(self._pool) as conn:
            return (await remaining(conn, tenant_id, [version_id])).get(version_id)

    async def _run(self, visibility: Visibility, request: CaptureRequest) -> Captured:
        tenant = request.caller.tenant_id
        ours = self._access.writes_grants_in(self._pool)

        async def attempt(live: LiveGeneration) -> Captured:
            planned = await _plan(request.document, live)

            async def work(conn: Connection) -> Captured:
                return await CaptureTransaction(conn, visibility, request, planned, live, ours).run()

            return await in_transaction(self._pool, work)

        return await self._settled(tenant, attempt)

    async def _settled(self, tenant_id: str, attempt: Callable[[LiveGeneration], Awaitable[T]]) -> T:
        """What `attempt` makes of the live generation, once that stands still for so long."""
        for _ in range(ATTEMPTS):
            live = await self._live_generation(tenant_id)
            try:
                return await attempt(live)
            except LiveGenerationMoved:
                self._live.pop(tenant_id, None)
            except StartOver:
                continue
        raise Unavailable(
            "The tenant's generations changed too often while this was captured; nothing was written. Try again.",
            code="lock_conflict",
            retry_after=1,
        )

    async def _live_generation(self, tenant_id: str) -> LiveGeneration:
        """What this process last knew; the transaction checks it under the lock."""
        known = self._live.get(tenant_id)
        if known is not None:
            return known
        async with connection(self._pool) as conn:
            live = await live_generation(conn, tenant_id)
            if live is None:
                await make_first_generation(conn, tenant_id, self._settings.default_recipe())
                live = await live_generation(conn, tenant_id)
        if live is None:
            raise Unavailable(
                "The tenant's generation is being switched; nothing was written. Try again.",
                code="lock_conflict",
                retry_after=1,
            )
        if len(self._live) >= MOST_TENANTS_REMEMBERED:
            self._live.clear()
        self._live[tenant_id] = live
        return live

    async def _key_of_hashes(self) -> bytes:
        if self._hash_key is None:
            async with connection(self._pool) as conn:
                self._hash_key = await idempotency.hash_key(conn)
        return self._hash_key


async def _plan(document: SourceDocument, live: LiveGeneration) -> CapturePlan:
    if len(document.text) > LONG_TEXT_CHARS:
        return await asyncio.to_thread(plan, document, live.recipe)
    return plan(document, live.recipe)
