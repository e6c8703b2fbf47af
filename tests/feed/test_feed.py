"""The feed's contract on a real database: nothing lost, nothing twice, full pages, cursors that never go back."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from memory_plane.contracts.enums import FeedEventKind
from memory_plane.core.visibility import Visibility
from memory_plane.plane import feed as feed_module
from memory_plane.plane.feed import Feed
from memory_plane.store.database import Pool, transaction
from tests.feed.facts import TENANT, capture, reader, tell, write_version


async def walk(feed: Feed, who: Visibility, after: int = 0, limit: int = 3) -> tuple[list[str], int]:
    """Every version id to the end, and the cursor there."""
    seen: list[str] = []
    while True:
        page = await feed.entries(who, after, limit)
        seen += [entry.version_id for entry in page.entries]
        assert [entry.feed_seq for entry in page.entries] == sorted({entry.feed_seq for entry in page.entries})
        if page.next_cursor == after:
            return seen, after
        after = page.next_cursor


async def test_inv_23_what_began_first_and_commits_last_is_seen_once(pool: Pool) -> None:
    """The writer that began first commits last: with a sequence its number would lie behind the reader's cursor."""
    feed, may_commit, who = Feed(pool), asyncio.Event(), reader()
    slow = asyncio.create_task(capture(pool, before_commit=may_commit))
    _, fast = await capture(pool)
    page = await feed.entries(who, 0, 10)
    assert [entry.version_id for entry in page.entries] == [fast]
    may_commit.set()
    _, late = await slow
    rest, _ = await walk(feed, who, page.next_cursor)
    assert rest == [late]


async def test_inv_23_a_position_taken_and_not_committed_holds_later_ones_back(pool: Pool) -> None:
    """A writer that has its position and is slow to commit: whoever comes after waits, so no reader can pass it."""
    feed, who = Feed(pool), reader()
    async with transaction(pool) as conn:
        document, first = await write_version(conn)
        await tell(conn, FeedEventKind.CAPTURED, document, first)
        second = asyncio.create_task(capture(pool))
        async with transaction(pool) as watcher:
            while not await watcher.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ):
                await watcher.execute("SELECT pg_stat_clear_snapshot()")
        page = await feed.entries(who, 0, 10)
        assert (page.entries, page.next_cursor) == ([], 0)
    _, later = await second
    assert (await walk(feed, who))[0] == [first, later]


async def test_inv_23_readers_that_poll_see_every_version_once_in_one_order(pool: Pool) -> None:
    """Eight writers of ten versions each, every other one held open until others have passed it; two readers."""
    feed, who, done = Feed(pool), reader(), asyncio.Event()

    async def write() -> list[str]:
        written = []
        for _ in range(5):
            held = asyncio.Event()
            slow = asyncio.create_task(capture(pool, before_commit=held))
            written.append((await capture(pool))[1])
            held.set()
            written.append((await slow)[1])
        return written

    async def follow() -> list[str]:
        seen: list[str] = []
        after = 0
        while True:
            last_look = done.is_set()
            more, after = await walk(feed, who, after)
            seen += more
            if last_look:
                return seen

    readers = [asyncio.create_task(follow()) for _ in range(2)]
    written = [version for batch in await asyncio.gather(*(write() for _ in range(8))) for version in batch]
    done.set()
    first, second = await asyncio.gather(*readers)
    assert sorted(first) == sorted(written)
    assert first == second


async def test_pages_are_full_past_what_is_denied_and_the_cursor_advances(pool: Pool) -> None:
    feed, eve = Feed(pool), reader("eve", "memory.space:eng")
    mine = []
    for n in range(40):
        tags = ["memory.space:eng"] if n % 10 == 9 else ["memory.space:other"]
        _, version = await capture(pool, tags=tags)
        mine += [version] if n % 10 == 9 else []
    page = await feed.entries(eve, 0, 3)
    assert [entry.version_id for entry in page.entries] == mine[:3]
    assert page.next_cursor == 30
    page = await feed.entries(eve, page.next_cursor, 3)
    assert [entry.version_id for entry in page.entries] == mine[3:]
    assert page.next_cursor == 40
    nobody = await feed.entries(reader("zoe"), 0, 3)
    assert (nobody.entries, nobody.next_cursor) == ([], 40)


async def test_many_short_ranges_make_one_full_page(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "FIRST_RANGE", 2)
    monkeypatch.setattr(feed_module, "LONGEST_RANGE", 4)
    for n in range(20):
        await capture(pool, creator="ann" if n in (1, 13, 19) else "bob")
    page = await Feed(pool).entries(reader(), 0, 3)
    assert [entry.feed_seq for entry in page.entries] == [2, 14, 20]


async def test_a_deadline_leaves_a_short_page_that_says_so_and_goes_on(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "FIRST_RANGE", 2)
    monkeypatch.setattr(feed_module, "LONGEST_RANGE", 2)
    monkeypatch.setattr(feed_module, "DEADLINE", -1.0)
    for n in range(6):
        await capture(pool, creator="ann" if n == 5 else "bob")
    feed, who = Feed(pool), reader()
    page = await feed.entries(who, 0, 3)
    assert (page.entries, page.next_cursor, page.degraded) == ([], 2, ["page_incomplete"])
    assert len((await walk(feed, who))[0]) == 1


async def test_past_the_end_the_cursor_given_comes_back(pool: Pool) -> None:
    feed, who = Feed(pool), reader()
    assert (await feed.entries(who, 0, 5)).next_cursor == 0
    await capture(pool)
    for after in (1, 7, 2**63 - 1):
        assert (await feed.entries(who, after, 5)).next_cursor == after
        assert (await feed.events(who, after, 5)).next_cursor == after


async def test_an_excluded_generator_is_passed_over(pool: Pool) -> None:
    await capture(pool, generator="robot")
    _, human = await capture(pool)
    await capture(pool, generator="robot")
    page = await Feed(pool).entries(reader(), 0, 5, exclude_generator="robot")
    assert [entry.version_id for entry in page.entries] == [human]
    assert page.next_cursor == 3


async def test_superseded_stay_and_withdrawn_drop_out(pool: Pool) -> None:
    feed, who = Feed(pool), reader()
    kept: list[str] = []
    for status in ("superseded", "deprecated", "tombstoned"):
        _, version = await capture(pool)
        async with transaction(pool) as conn:
            await conn.execute("UPDATE memory.version SET status = $1 WHERE id = $2", status, version)
        kept += [version] if status == "superseded" else []
    long_ago = datetime.now(UTC) - timedelta(days=8)
    await capture(pool, retention_class="ephemeral", ingested_at=long_ago)
    _, lasting = await capture(pool, retention_class="standard", ingested_at=long_ago)
    seen, cursor = await walk(feed, who)
    assert seen == [*kept, lasting]
    assert cursor == 5


async def test_another_tenants_entries_and_numbers_are_its_own(pool: Pool) -> None:
    await capture(pool, tenant="other")
    _, mine = await capture(pool)
    page = await Feed(pool).entries(reader("ann", "*"), 0, 5)
    assert [(entry.feed_seq, entry.version_id) for entry in page.entries] == [(1, mine)]


async def test_mirrors_learn_what_is_gone_and_only_ids(pool: Pool) -> None:
    feed = Feed(pool)
    document, version = await capture(pool)
    async with transaction(pool) as conn:
        await tell(conn, FeedEventKind.RETAGGED, document, None)
    async with transaction(pool) as conn:
        await tell(conn, FeedEventKind.SHARED, document, None)
    async with transaction(pool) as conn:
        await tell(conn, FeedEventKind.RECLASSED, document, version)
    gone, _ = await capture(pool)
    async with transaction(pool) as conn:
        await conn.execute("DELETE FROM memory.document WHERE tenant_id = $1 AND id = $2", TENANT, gone)
        await tell(conn, FeedEventKind.PURGED, gone, None)

    async def kinds(who: Visibility) -> list[tuple[int, str]]:
        page = await feed.events(who, 0, 50)
        assert page.next_cursor == 6
        return [(entry.position, entry.event.value) for entry in page.entries]

    assert await kinds(reader()) == [
        (1, "captured"),
        (2, "retagged"),
        (3, "shared"),
        (4, "reclassed"),
        (6, "purged"),
    ]
    assert await kinds(reader("zoe")) == [(2, "retagged"), (6, "purged")]
