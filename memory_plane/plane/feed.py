"""The feed: every version once, in commit order, each page full of what the caller may see.

The cursor is a position. It advances past what is denied or excluded, and where there is nothing more it is the
one that was given, never less: a client that stores it neither starts over nor stands still.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import asyncpg

from memory_plane.contracts.enums import Degraded
from memory_plane.contracts.wire import FeedEntry, FeedEvent, FeedEventsResponse, FeedResponse
from memory_plane.core.text import is_storable
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import visible_documents, visible_versions
from memory_plane.store import feed as store
from memory_plane.store.database import Connection, Pool, connection

FIRST_RANGE = 1_000
LONGEST_RANGE = 50_000
"""Positions one statement looks at. Ranges grow while little is found, so that no statement runs long."""
DEADLINE = 5.0
"""Seconds for one page. Past them it is handed out as far as it is, with `page_incomplete`."""

Read = Callable[[Connection, int, int, int], Awaitable[Sequence[asyncpg.Record]]]
Judge = Callable[[Connection, Sequence[asyncpg.Record]], Awaitable[Sequence[asyncpg.Record]]]


class Feed:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def entries(
        self, visibility: Visibility, after: int, limit: int, exclude_generator: str | None = None
    ) -> FeedResponse:
        """Versions captured after position `after`, at most `limit`."""
        tenant = visibility.caller.tenant_id
        if exclude_generator is not None and not is_storable(exclude_generator):
            exclude_generator = None  # no agent can have such a name

        async def read(conn: Connection, low: int, high: int, wanted: int) -> Sequence[asyncpg.Record]:
            return await store.captured(conn, tenant, low, high, wanted, visibility.scope, exclude_generator)

        async def judge(conn: Connection, rows: Sequence[asyncpg.Record]) -> Sequence[asyncpg.Record]:
            seen = await visible_versions(conn, visibility, {row["id"] for row in rows})
            return [row for row in rows if row["id"] in seen]

        rows, cursor, degraded = await self._page(tenant, after, limit, "feed_position", read, judge)
        return FeedResponse(entries=[_entry(row) for row in rows], next_cursor=cursor, degraded=degraded)

    async def events(self, visibility: Visibility, after: int, limit: int) -> FeedEventsResponse:
        """Changes after position `after`, at most `limit`, for mirrors."""
        tenant = visibility.caller.tenant_id

        async def read(conn: Connection, low: int, high: int, wanted: int) -> Sequence[asyncpg.Record]:
            return await store.events(conn, tenant, low, high, wanted, visibility.scope)

        async def judge(conn: Connection, rows: Sequence[asyncpg.Record]) -> Sequence[asyncpg.Record]:
            under_visibility = [row for row in rows if row["kind"] not in store.TOLD_TO_ALL]
            documents = await visible_documents(conn, visibility, {row["document_id"] for row in under_visibility})
            versions = await visible_versions(
                conn, visibility, {row["version_id"] for row in under_visibility if row["version_id"]}
            )
            return [
                row
                for row in rows
                if row["kind"] in store.TOLD_TO_ALL
                or (row["version_id"] in versions if row["version_id"] else row["document_id"] in documents)
            ]

        rows, cursor, degraded = await self._page(tenant, after, limit, "position", read, judge)
        return FeedEventsResponse(entries=[_event(row) for row in rows], next_cursor=cursor, degraded=degraded)

    async def _page(
        self, tenant: str, after: int, limit: int, position: str, read: Read, judge: Judge
    ) -> tuple[list[asyncpg.Record], int, list[str] | None]:
        """Rows that the caller sees, the cursor behind the last one looked at, and why the page is short if it is."""
        page: list[asyncpg.Record] = []
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DEADLINE
        async with connection(self._pool) as conn:
            # Read before the rows: whatever is committed later has a higher position.
            head = await store.head(conn, tenant)
            cursor, span = after, FIRST_RANGE
            while cursor < head:
                high = min(cursor + span, head)
                rows = await read(conn, cursor, high, limit)
                page += await judge(conn, rows)
                if len(page) >= limit:
                    page = page[:limit]
                    return page, page[-1][position], None
                if len(rows) == limit:
                    cursor = rows[-1][position]
                else:
                    cursor, span = high, min(span * 4, LONGEST_RANGE)
                if cursor < head and loop.time() > deadline:
                    return page, cursor, [Degraded.PAGE_INCOMPLETE]
        return page, max(after, cursor), None


def _entry(row: asyncpg.Record) -> FeedEntry:
    return FeedEntry(
        feed_seq=row["feed_position"],
        version_id=row["id"],
        document_id=row["document_id"],
        kind=row["kind"],
        title=row["title"],
        status=row["status"],
        created_by_kind=row["created_by_kind"],
        generator_agent_id=row["generator_agent_id"],
        provenance=row["provenance"],
        occurred_at=row["occurred_at"],
        created_at=row["ingested_at"],
        access_tags=list(row["access_tags"]),
    )


def _event(row: asyncpg.Record) -> FeedEvent:
    return FeedEvent(
        position=row["position"],
        event=row["kind"],
        document_id=row["document_id"],
        version_id=row["version_id"],
        at=row["at"],
    )
