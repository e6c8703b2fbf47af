"""Deriving beside itself, beside forgets and purges, and in pages that fit in memory."""

import asyncio
from typing import Any

import pytest

from memory_plane.plane import deriving
from memory_plane.plane.deriving import plan_payloads, portions
from memory_plane.store import deriving as store
from memory_plane.store.database import connection
from memory_plane.store.generations import Candidate
from memory_plane.store.locks import lock_documents
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.generations.world import Tenant, embed_states

CASES: dict[str, dict[str, Any]] = {
    "plain": {"title": "a title", "text": "some text"},
    "nul": {"title": "nul\x00 in it", "text": "before\x00after"},
    "surrogate": {"title": "half \ud83d", "text": "a half \udc00 character"},
    "long": {"title": "long", "text": "word " * 4000},
    "chinese": {"title": "标题", "text": "我们在河边看见了一只水獭。" * 40},
    "speaker": {"title": "chat", "text": "hello", "attributes": {"speaker": "Caroline"}},
    "dated": {"title": "chat", "text": "hello", "occurred_at": "2026-03-04T05:06:07+02:00"},
}


async def derived(tenant: Tenant, generation: str) -> list[tuple[object, ...]]:
    rows = await tenant.engine.pool.fetch(
        """
        SELECT c.version_id, c.ordinal, c.text, c.context, c.grams, c.span_start, c.span_end, c.token_count, c.role
        FROM memory.chunk c WHERE c.generation_id = $1 ORDER BY 1, 2
        """,
        generation,
    )
    return [tuple(row) for row in rows]


async def test_a_stored_payload_derives_as_its_capture_did(tenant: Tenant) -> None:
    """Under the same recipe, whatever the text: chunk for chunk."""
    for fields in CASES.values():
        await tenant.capture(**fields)
    await tenant.embed_live()
    staged = await tenant.staged({})
    assert await derived(tenant, staged) == await derived(tenant, await tenant.live())


async def test_another_recipe_derives_otherwise_and_leaves_live_alone(tenant: Tenant) -> None:
    await tenant.capture("word " * 4000)
    before = await derived(tenant, await tenant.live())
    staged = await tenant.staged({"chunk": {"maxTokens": 100}})
    assert len(await derived(tenant, staged)) > len(before)
    assert await derived(tenant, await tenant.live()) == before


async def test_pages_are_bounded_in_versions_and_bytes() -> None:
    sizes = [5, 5, 95, 3, 3, 3, 200]
    candidates = [Candidate(f"kver_{n}", "kdoc", n, size) for n, size in enumerate(sizes)]
    made = [[each.size for each in portion] for portion in portions(candidates, 2, 100)]
    assert made == [[5, 5], [95, 3], [3, 3], [200]]
    assert portions([], 2, 100) == []


async def test_a_step_beside_its_own_zombies_writes_everything_once(tenant: Tenant) -> None:
    for n in range(30):
        await tenant.capture(f"the otter swims {n}")
    run_id = await tenant.run()
    await asyncio.gather(*(tenant.step(run_id) for _ in range(4)))
    standing = await tenant.build(run_id)
    assert (standing.state, standing.versions, standing.chunks) == ("staged", 30, 30)
    row = await tenant.engine.pool.fetchrow("SELECT * FROM memory.transform_run WHERE id = $1", run_id)
    assert row is not None and (row["raw_count"], row["version_count"], row["chunk_count"]) == (30, 30, 30)
    assert await embed_states(tenant, run_id) == {"embedded": 30}


async def test_a_step_that_is_broken_off_goes_on_and_embeds_one_batch_twice_at_most(
    tenant: Tenant, fake: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deriving, "PAGE_VERSIONS", 80)
    for n in range(160):
        await tenant.capture(f"the otter swims {n}")
    run_id = await tenant.run()
    await tenant.step(run_id)
    fake.forget_calls()
    hold = fake.hold(on="embed")
    broken = asyncio.create_task(tenant.step(run_id))
    await hold.reached(1)
    broken.cancel()
    with pytest.raises(asyncio.CancelledError):
        await broken
    fake.heal()
    assert (await tenant.build(run_id)).state == "staged"
    batch = tenant.engine.settings.embed_batch_size
    assert sum(fake.embedded.values()) - len(fake.embedded) <= batch


@pytest.mark.parametrize("end", ["forget", "purge"])
async def test_inv_20_a_step_in_flight_leaves_nothing_of_a_document_that_ends(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The payload has been read and planned when the document is forgotten; the write finds out under its lock."""
    gone, kept = await tenant.add("the secret otter"), await tenant.add("the heron")
    run_id = await tenant.run()
    planned, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slowly(*given: object) -> object:
        made = plan_payloads(*given)  # type: ignore[arg-type]
        loop.call_soon_threadsafe(planned.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(30)
        return made

    monkeypatch.setattr(deriving, "plan_payloads", slowly)
    stepping = asyncio.create_task(tenant.step(run_id))
    await planned.wait()
    visibility = await tenant.visibility()
    await getattr(tenant.engine.retention, end)(visibility, gone.document_id)
    go_on.set()
    await stepping
    monkeypatch.undo()
    standing = await tenant.build(run_id)
    assert (standing.state, standing.versions) == ("staged", 1)
    rows = await tenant.engine.pool.fetch("SELECT version_id, text FROM memory.chunk WHERE generation_id = $1", run_id)
    assert [row["version_id"] for row in rows] == [kept.version_id]
    states = await tenant.engine.pool.fetchval(
        "SELECT count(*) FROM memory.derivation WHERE version_id = $1", gone.version_id
    )
    assert states == 0


async def test_a_forget_that_waits_for_a_write_finds_what_it_wrote(tenant: Tenant) -> None:
    captured = await tenant.add("the secret otter")
    run_id = await tenant.run()
    async with connection(tenant.engine.pool) as conn:
        holding = conn.transaction()
        await holding.start()
        await lock_documents(conn, tenant.tenant, [captured.document_id])
        stepping = asyncio.create_task(tenant.step(run_id))
        await waiting_for_locks(tenant, 1)
        forgetting = asyncio.create_task(tenant.forget(captured.document_id))
        await waiting_for_locks(tenant, 2)
        await holding.commit()
    await asyncio.gather(stepping, forgetting)
    left = await tenant.engine.pool.fetch(
        "SELECT text FROM memory.chunk WHERE version_id = $1 AND text LIKE '%otter%'", captured.version_id
    )
    assert left == []


async def test_a_superseded_version_that_is_deprecated_later_is_derived(tenant: Tenant) -> None:
    """It was walked past while its successor lived, and includeDeprecated shows it once that has gone."""
    first = await tenant.add("the otter swims", external_ref="one")
    second = await tenant.add("the heron stands", external_ref="one")
    staged = await tenant.staged()
    await tenant.engine.retention.deprecate(tenant.tenant, first.version_id)
    plan = await tenant.check("promote", staged)
    await tenant.catch_up(plan)
    held = await tenant.engine.pool.fetch("SELECT version_id FROM memory.derivation WHERE generation_id = $1", staged)
    assert {row["version_id"] for row in held} == {first.version_id, second.version_id}


async def test_history_derives_superseded_versions_too(tenant: Tenant) -> None:
    await tenant.add("the otter swims", external_ref="one")
    await tenant.add("the heron stands", external_ref="one")
    assert (await embed_states(tenant, await tenant.staged())) == {"embedded": 1}
    assert (await embed_states(tenant, await tenant.staged({"history": True}))) == {"embedded": 2}


async def test_what_is_read_is_read_with_its_status(tenant: Tenant) -> None:
    captured = await tenant.add("the otter swims")
    async with connection(tenant.engine.pool) as conn:
        assert len(await store.payloads(conn, tenant.tenant, [captured.version_id])) == 1
        assert await store.payloads(conn, "another", [captured.version_id]) == []
    await tenant.forget(captured.document_id)
    async with connection(tenant.engine.pool) as conn:
        assert await store.payloads(conn, tenant.tenant, [captured.version_id]) == []


async def waiting_for_locks(tenant: Tenant, count: int) -> None:
    async def enough() -> bool:
        waiting: int = await tenant.engine.pool.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return waiting >= count

    await eventually(enough, what=f"{count} waiting for a lock")
