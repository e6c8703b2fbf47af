"""Any number of writers at once: nothing doubled, nothing lost, no error that is not the caller's own."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from memory_plane.contracts.enums import FeedEventKind
from memory_plane.contracts.errors import Unavailable
from memory_plane.plane.captured import Captured
from memory_plane.settings import Settings
from memory_plane.store import feed_events, locks
from memory_plane.store.database import Connection, open_pool, transaction
from tests.capture.memory import Memory, waiting_for_locks
from tests.eventually import eventually


async def test_inv_01_identical_captures_at_once_make_one_version(wide_memory: Memory) -> None:
    answers = await asyncio.gather(*(wide_memory.add(external_ref="note") for _ in range(20)))

    assert len({(answer.document_id, answer.version_id) for answer in answers}) == 1
    assert sorted(answer.status for answer in answers) == ["captured"] + ["noop"] * 19
    for table in ("document", "version", "raw_capture", "derivation", "feed_event"):
        assert await wide_memory.count(table) == 1, table


async def test_inv_01_identical_captures_under_one_key_answer_alike(wide_memory: Memory) -> None:
    answers = await asyncio.gather(*(wide_memory.add(key="k", external_ref="note") for _ in range(20)))

    assert len({(answer.document_id, answer.version_id, answer.status) for answer in answers}) == 1
    assert sum(answer.replayed for answer in answers) == 19
    assert await wide_memory.count("version") == 1


async def test_inv_02_different_captures_at_once_make_a_chain(wide_memory: Memory) -> None:
    answers = await asyncio.gather(*(wide_memory.add(external_ref="note", text=f"text {n}") for n in range(20)))

    assert [answer.status for answer in answers] == ["captured"] * 20
    (document_id,) = {answer.document_id for answer in answers}
    chain = await wide_memory.chain(document_id)
    assert [row["version"] for row in chain] == list(range(1, 21))
    assert [row["status"] for row in chain] == ["superseded"] * 19 + ["active"]
    assert [row["supersedes_version_id"] for row in chain] == [None, *(row["id"] for row in chain[:-1])]
    stamps = [row["ingested_at"] for row in chain]
    assert stamps == sorted(stamps), "a version is stamped after the wait for its document"
    assert [row["feed_position"] for row in chain] == list(range(1, 21))


async def test_the_numbers_are_drawn_over_all_versions(memory: Memory) -> None:
    first = await memory.add(external_ref="note", text="one")
    await memory.add(external_ref="note", text="two")
    await memory.pool.execute("UPDATE memory.version SET status = 'deprecated'")

    third = await memory.add(external_ref="note", text="three")

    chain = await memory.chain(first.document_id)
    assert [(row["version"], row["status"]) for row in chain] == [(1, "deprecated"), (2, "deprecated"), (3, "active")]
    assert chain[2]["id"] == third.version_id
    assert chain[2]["supersedes_version_id"] is None


Connect = Callable[[], Awaitable[Connection]]


async def deadlocks_met(memory: Memory, connect: Connect) -> int:
    """How many the server has broken up in this test's database; sessions tell when they end, so all are ended."""
    await memory.pool.close()
    count: int = await (await connect()).fetchval(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    return count


async def told_when_busy(memory: Memory, **fields: Any) -> Captured:
    """An add by a client that comes again when the queue for a connection was too long, as the 503 asks it to."""
    while True:
        try:
            return await memory.add(**fields)
        except Unavailable as refusal:
            if refusal.code != "database_busy":
                raise


@pytest.mark.parametrize("callers", [16, 200])
async def test_the_first_adds_of_a_fresh_tenant_share_one_generation(settings: Settings, callers: int) -> None:
    pool = await open_pool(settings)
    first = Memory.on(pool, settings)
    processes = [first, *(first.restarted(settings) for _ in range(3))]
    try:
        answers = await asyncio.gather(
            *(told_when_busy(processes[n % 4], external_ref=f"note {n}", text=f"text {n}") for n in range(callers))
        )
        assert len({answer.version_id for answer in answers}) == callers
        assert len({answer.generation_id for answer in answers}) == 1
        assert await first.count("generation") == 1
        assert [position for position, _ in await first.events()] == list(range(1, callers + 1))
    finally:
        pool.terminate()


async def test_captures_over_overlapping_entities_meet_no_deadlock(wide_memory: Memory, connect: Connect) -> None:
    names = [{"kind": "person", "identifier": f"p{n}"} for n in range(12)]
    shuffler = random.Random(7)

    async def capture(n: int) -> Captured:
        entities = shuffler.sample(names, 8)
        return await wide_memory.add(external_ref=f"note {n}", text=f"text {n}", entities=entities)

    answers = await asyncio.gather(*(capture(n) for n in range(50)))

    assert len({answer.document_id for answer in answers}) == 50
    assert await wide_memory.count("entity") == 12
    assert await wide_memory.count("edge", "rel = 'mentions'") == 50 * 8
    known = {row["id"] for row in await wide_memory.rows("entity")}
    assert {row["to_id"] for row in await wide_memory.rows("edge")} == known
    assert await deadlocks_met(wide_memory, connect) == 0


async def test_a_random_mixed_load_ends_with_every_answer_true(wide_memory: Memory, connect: Connect) -> None:
    shuffler = random.Random(11)
    refs = [f"note {n}" for n in range(4)]
    seeds = [await wide_memory.add(external_ref=ref) for ref in refs]

    async def one(n: int) -> Captured:
        ref, sources = shuffler.choice(refs), shuffler.sample(seeds, 2)
        kind = n % 4
        if kind == 0:
            return await wide_memory.add(external_ref=ref, text=f"text {n}", key=f"k{n}")
        if kind == 1:
            return await wide_memory.add(external_ref=ref, access_tags=[f"memory.space:{n % 3}"])
        if kind == 2:
            entities = [{"kind": "person", "identifier": f"p{shuffler.randrange(4)}"} for _ in range(3)]
            return await wide_memory.add(
                external_ref=ref, text=f"text {n}", entities=entities, share={"principals": ["bob"]}
            )
        derived_from = [seed.version_id for seed in sources]
        return await wide_memory.add(
            adapter="claim", external_ref=shuffler.choice(refs), text=f"claim {n}", derived_from=derived_from
        )

    answers = await asyncio.gather(*(one(n) for n in range(80)))

    versions = {row["id"]: row for row in await wide_memory.rows("version")}
    assert {answer.version_id for answer in answers} <= versions.keys()
    captured = [answer.version_id for answer in answers if answer.status == "captured"]
    assert len(captured) == len(set(captured))
    by_document: dict[str, list[str]] = {}
    for row in versions.values():
        by_document.setdefault(row["document_id"], []).append(row["status"])
    assert all(statuses.count("active") == 1 for statuses in by_document.values())
    positions = sorted(row["feed_position"] for row in versions.values())
    assert len(set(positions)) == len(versions)
    assert [position for position, _ in await wide_memory.events()] == list(
        range(1, await wide_memory.count("feed_event") + 1)
    )
    assert await deadlocks_met(wide_memory, connect) == 0


async def test_a_claim_and_a_writer_of_its_source_wait_for_each_other_in_order(
    wide_memory: Memory, connect: Connect
) -> None:
    """Claims of older on newer documents and the other way round, while all of them are written: the order of ids
    decides, whichever is whose source."""
    notes = [await wide_memory.add(external_ref=f"note {n}") for n in range(3)]
    claims = [await wide_memory.add(external_ref=f"claim {n}", derived_from=[notes[n].version_id]) for n in range(3)]

    async def recapture(n: int) -> Captured:
        if n % 2:
            sources = [claims[(n + 1) % 3].version_id]
            return await wide_memory.add(external_ref=f"note {n % 3}", text=f"text {n}", derived_from=sources)
        sources = [notes[(n + 1) % 3].version_id]
        return await wide_memory.add(external_ref=f"claim {n % 3}", text=f"text {n}", derived_from=sources)

    answers = await asyncio.gather(*(recapture(n) for n in range(40)))

    assert [answer.status for answer in answers] == ["captured"] * 40
    assert await deadlocks_met(wide_memory, connect) == 0


async def test_one_long_transaction_of_a_tenant_delays_no_other_tenant(wide_memory: Memory, settings: Settings) -> None:
    other = Memory.on(wide_memory.pool, settings, tenant="globex")
    await wide_memory.add(external_ref="note")
    async with transaction(wide_memory.pool) as held:
        await locks.own_cutover(held, wide_memory.tenant)
        await held.execute("SELECT FROM memory.document WHERE tenant_id = $1 FOR UPDATE", wide_memory.tenant)

        assert (await other.add(external_ref="note")).status == "captured"


async def test_positions_are_handed_out_in_the_order_of_commits(wide_memory: Memory) -> None:
    """One writer holds its transaction after its last statement: those who come later wait, and none overtakes."""
    first = await wide_memory.add(external_ref="held")
    async with transaction(wide_memory.pool) as held:
        event = feed_events.Event(FeedEventKind.RECLASSED, first.document_id, first.version_id)
        assert await feed_events.append_events(held, wide_memory.tenant, [event]) == [2]
        writers = [asyncio.create_task(wide_memory.add(external_ref=f"note {n}")) for n in range(8)]
        async with transaction(wide_memory.pool) as watching:

            async def all_wait() -> bool:
                return await waiting_for_locks(watching, 8)

            await eventually(all_wait, what="eight writers to wait for the counter")
            assert await wide_memory.events() == [(1, "captured")], "nobody is seen before the one who came first"
    await asyncio.gather(*writers)

    assert [position for position, _ in await wide_memory.events()] == list(range(1, 11))
    rows = await wide_memory.rows("version")
    assert sorted(row["feed_position"] for row in rows) == [1, *range(3, 11)]
