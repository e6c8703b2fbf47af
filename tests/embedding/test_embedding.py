"""The embedding plane on a real database, with an endpoint that fails on purpose."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from memory_plane.contracts.enums import EmbedState
from memory_plane.contracts.recipe import Recipe
from memory_plane.contracts.workflows import EmbedResult
from memory_plane.core.embed_text import NEIGHBOUR_SLOT
from memory_plane.models.errors import EndpointFault
from memory_plane.models.pool import ModelPool
from memory_plane.plane.embedding import INLINE_CHUNKS, Embedding
from memory_plane.settings import Settings
from memory_plane.store import derivations
from memory_plane.store.database import Connection, Pool
from memory_plane.store.embed_models import EmbedModel
from tests.embedding.corpus import Stored, embed_state, make_generation, store, tombstone
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import HtmlPage, Poison, Status, WrongCount, WrongDims

TENANT = "acme"


@pytest.fixture
async def live(pool: Pool, configured: Settings) -> str:
    return await make_generation(pool, TENANT, configured.default_recipe())


@pytest.fixture
async def model(embedding: Embedding) -> EmbedModel:
    registered = await embedding.ensure_engine_model()
    assert registered is not None
    return registered


async def vectors_of(pool: Pool, model: EmbedModel, stored: Stored) -> dict[tuple[str, int], np.ndarray]:
    rows = await pool.fetch(
        f"SELECT chunk_id, slot, embedding FROM memory.{model.table} WHERE version_id = $1", stored.version_id
    )
    return {(row["chunk_id"], row["slot"]): row["embedding"].to_numpy().astype(np.float32) for row in rows}


# Inline


async def test_an_add_is_embedded_within_its_budget(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    stored = await store(pool, TENANT, live, ["red apples", "green pears"], context="fruit")

    assert await embedding.embed_inline(TENANT, stored, 5) is EmbedState.EMBEDDED

    found = await vectors_of(pool, model, stored)
    for chunk in stored.chunks:
        expected = np.array(fake.vector(chunk.text_to_embed))
        cosine = found[chunk.chunk_id, 0] @ expected / np.linalg.norm(expected)
        assert cosine == pytest.approx(1, abs=1e-3)
    assert await embed_state(pool, stored.version_id) == "embedded"
    assert fake.embedded["fruit\nred apples"] == 1


async def test_concurrent_adds_share_requests(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    many = [await store(pool, TENANT, live, [f"text {number}"]) for number in range(30)]
    fake.forget_calls()
    await embedding.resolve(TENANT, live)

    states = await asyncio.gather(*(embedding.embed_inline(TENANT, stored, 5) for stored in many))

    assert set(states) == {EmbedState.EMBEDDED}
    assert fake.count("embed") < 10


async def test_a_hanging_endpoint_costs_the_budget_and_no_connection(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    stored = await store(pool, TENANT, live, ["text"])
    hold = fake.hold(on="embed")
    adding = asyncio.create_task(embedding.embed_inline(TENANT, stored, 0.5))
    await hold.reached(1)
    assert pool.get_size() == pool.get_idle_size()

    assert await adding is EmbedState.PENDING
    assert await embed_state(pool, stored.version_id) == "pending"
    hold.release()


async def test_an_endpoint_that_is_too_slow_for_adds_does_not_cost_each_its_budget(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    many = [await store(pool, TENANT, live, [f"text {number}"]) for number in range(4)]
    hold = fake.hold(on="embed")
    for stored in many[:3]:
        assert await embedding.embed_inline(TENANT, stored, 0.1) is EmbedState.PENDING
    asked = fake.count("embed")

    assert await embedding.embed_inline(TENANT, many[3], 60) is EmbedState.PENDING  # at once, and without a call

    assert fake.count("embed") == asked
    hold.release()


@pytest.mark.parametrize("fault", [Status(500), Status(401), HtmlPage(), WrongCount(), WrongDims(32)])
async def test_a_failing_endpoint_is_told_from_a_slow_one(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint, fault: Status
) -> None:
    stored = await store(pool, TENANT, live, ["text"])
    fake.fail(fault, on="embed")
    assert await embedding.embed_inline(TENANT, stored, 5) is None
    assert await embed_state(pool, stored.version_id) == "pending"
    assert await pool.fetchval("SELECT attempts FROM memory.derivation") == 0  # no fault of the text


async def test_a_poisoned_add_counts_an_attempt(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    stored = await store(pool, TENANT, live, ["good", "POISON"])
    fake.fail(Poison())
    assert await embedding.embed_inline(TENANT, stored, 5) is None
    assert await pool.fetchval("SELECT attempts FROM memory.derivation") == 1
    assert len(await vectors_of(pool, model, stored)) == 1


async def test_an_add_issues_no_ddl_and_no_probe(
    pool: Pool, live: str, embedding: Embedding, fake: FakeEndpoint
) -> None:
    stored = await store(pool, TENANT, live, ["text"])
    assert await embedding.embed_inline(TENANT, stored, 5) is EmbedState.PENDING
    assert fake.calls == []
    assert await pool.fetchval("SELECT count(*) FROM memory.embed_model") == 0


async def test_a_long_document_is_left_to_the_worker(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    stored = await store(pool, TENANT, live, [f"chunk {number}" for number in range(INLINE_CHUNKS + 1)])
    fake.forget_calls()
    assert await embedding.embed_inline(TENANT, stored, 5) is EmbedState.PENDING
    assert fake.calls == []


async def test_without_an_endpoint_nothing_is_dispatched(pool: Pool, embedding: Embedding, fake: FakeEndpoint) -> None:
    lexical = await make_generation(pool, TENANT, Recipe())
    stored = await store(pool, TENANT, lexical, ["text"])
    assert await embedding.embed_inline(TENANT, stored, 5) is EmbedState.NOT_CONFIGURED
    assert await embedding.embed_versions(TENANT, [stored.version_id]) == EmbedResult(not_configured=1)
    assert fake.calls == []


async def test_a_noop_whose_embed_was_pending_reads_its_chunks_anew(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding
) -> None:
    stored = await store(pool, TENANT, live, ["one", "two"])
    again = Stored(stored.document_id, stored.version_id, live)
    assert await embedding.embed_inline(TENANT, again, 5) is EmbedState.EMBEDDED
    assert len(await vectors_of(pool, model, stored)) == 2


async def test_nothing_is_written_for_what_was_forgotten_meanwhile(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    stored = await store(pool, TENANT, live, ["secret"])
    hold = fake.hold(on="embed")
    adding = asyncio.create_task(embedding.embed_inline(TENANT, stored, 5))
    await hold.reached(1)
    await tombstone(pool, stored.version_id)
    hold.release()

    assert await adding is EmbedState.PENDING
    assert await vectors_of(pool, model, stored) == {}


@pytest.mark.parametrize("ending", ["forget", "purge"])
async def test_inv_20_what_is_forgotten_while_the_write_waits_for_its_lock_gets_no_vector(
    pool: Pool,
    live: str,
    model: EmbedModel,
    embedding: Embedding,
    connect: Callable[[], Awaitable[Connection]],
    ending: str,
) -> None:
    stored, other = [await store(pool, TENANT, live, ["one", "two"]) for _ in range(2)]
    forgetting = await connect()
    transaction = forgetting.transaction()
    await transaction.start()
    await forgetting.execute("SELECT FROM memory.document WHERE id = $1 FOR UPDATE", stored.document_id)

    writing = asyncio.create_task(embedding.embed_versions(TENANT, [stored.version_id, other.version_id]))
    await eventually(lambda: waits_for_lock(pool), what="the embedder to wait for the document's lock")
    if ending == "forget":
        await forgetting.execute("UPDATE memory.version SET status = 'tombstoned' WHERE id = $1", stored.version_id)
    else:
        await forgetting.execute("DELETE FROM memory.document WHERE id = $1", stored.document_id)
    await transaction.commit()

    assert await writing == EmbedResult(embedded=1)
    assert await vectors_of(pool, model, stored) == {}
    assert len(await vectors_of(pool, model, other)) == 2
    states = {
        row["embed_state"]
        for row in await pool.fetch(
            "SELECT embed_state FROM memory.derivation WHERE version_id = $1", stored.version_id
        )
    }
    assert states <= {"pending"}


async def waits_for_lock(pool: Pool) -> bool:
    waiting: bool = await pool.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
    return waiting


async def test_rows_that_are_gone_are_skipped(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    gone, stays = await store(pool, TENANT, live, ["gone"]), await store(pool, TENANT, live, ["stays"])
    hold = fake.hold(on="embed")
    passing = asyncio.create_task(embedding.embed_versions(TENANT, [gone.version_id, stays.version_id]))
    await hold.reached(1)
    await pool.execute("DELETE FROM memory.document WHERE id = $1", gone.document_id)
    hold.release()

    assert await passing == EmbedResult(embedded=1)
    assert len(await vectors_of(pool, model, stays)) == 1


# Batches


async def test_batches_are_full_across_documents(
    pool: Pool, live: str, embedding: Embedding, fake: FakeEndpoint
) -> None:
    many = [await store(pool, TENANT, live, [f"{number} a", f"{number} b"]) for number in range(48)]
    progress: list[int] = []

    result = await embedding.embed_versions(TENANT, [each.version_id for each in many], on_progress=progress.append)

    assert result == EmbedResult(embedded=48)
    batches = [len(call.texts) for call in fake.calls if call.texts != ("memory",)]
    assert batches == [32, 32, 32]
    assert progress[-1] == 96
    generation = await pool.fetchrow("SELECT model_key, dims FROM memory.generation WHERE id = $1", live)
    assert generation is not None
    assert generation["dims"] == 64  # pinned in the first embed


async def test_a_second_pass_embeds_nothing(pool: Pool, live: str, embedding: Embedding, fake: FakeEndpoint) -> None:
    stored = await store(pool, TENANT, live, ["one", "two"])
    await embedding.embed_versions(TENANT, [stored.version_id])
    fake.forget_calls()
    assert await embedding.embed_versions(TENANT, [stored.version_id]) == EmbedResult(embedded=1)
    assert fake.calls == []


async def test_two_embedders_of_one_version_are_harmless(
    pool: Pool, live: str, model: EmbedModel, configured: Settings, fake: FakeEndpoint
) -> None:
    stored = await store(pool, TENANT, live, ["one", "two", "three"])
    hold = fake.hold(on="embed")
    async with ModelPool() as here, ModelPool() as there:
        passes = [
            asyncio.create_task(Embedding(pool, configured, models).embed_versions(TENANT, [stored.version_id]))
            for models in (here, there)
        ]
        await hold.reached(2)
        hold.release()
        assert await asyncio.gather(*passes) == [EmbedResult(embedded=1)] * 2
    assert len(await vectors_of(pool, model, stored)) == 3


async def test_a_poisoned_text_fails_after_five_attempts_and_its_neighbours_are_fine(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    bad = await store(pool, TENANT, live, ["fine as such", "a POISON text"])
    good = [await store(pool, TENANT, live, [f"good {number}"]) for number in range(5)]
    ids = [bad.version_id, *(each.version_id for each in good)]
    fake.fail(Poison(code=500))

    for _ in range(4):
        assert await embedding.embed_versions(TENANT, ids) == EmbedResult(embedded=5, pending=1)
    assert await embedding.embed_versions(TENANT, ids) == EmbedResult(embedded=5, failed=1)

    reason: str = await pool.fetchval("SELECT last_error FROM memory.derivation WHERE version_id = $1", bad.version_id)
    assert "fails (500)" in reason
    assert "POISON" not in reason
    assert len(await vectors_of(pool, model, bad)) == 1  # its good chunk has a vector


async def test_a_failed_version_is_driven_again(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    bad = await store(pool, TENANT, live, ["a POISON text"])
    fake.fail(Poison())
    for _ in range(5):
        await embedding.embed_versions(TENANT, [bad.version_id])
    assert await embed_state(pool, bad.version_id) == "failed"
    fake.heal()
    async with pool.acquire() as conn:
        assert await derivations.redrive(conn, TENANT, live, [bad.version_id], [EmbedState.FAILED]) == 1
    assert await embedding.embed_versions(TENANT, [bad.version_id]) == EmbedResult(embedded=1)


@pytest.mark.parametrize(
    "fault",
    [Status(503, retry_after="7"), Status(429, retry_after="7"), Status(404), WrongCount(), WrongDims(65)],
)
async def test_a_fault_of_the_endpoint_is_raised_and_counts_no_attempt(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint, fault: Status
) -> None:
    stored = await store(pool, TENANT, live, ["one", "two"])
    fake.fail(fault)

    with pytest.raises(EndpointFault) as raised:
        await embedding.embed_versions(TENANT, [stored.version_id])

    if isinstance(fault, Status) and fault.retry_after:
        assert raised.value.retry_after == 7
    row = await pool.fetchrow("SELECT embed_state, attempts, held_until > now() AS held FROM memory.derivation")
    assert row is not None
    assert (row["embed_state"], row["attempts"], row["held"]) == ("pending", 0, True)


async def test_what_was_embedded_before_the_endpoint_failed_is_kept(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, configured: Settings, fake: FakeEndpoint
) -> None:
    first, second = [f"a{number}" for number in range(32)], [f"b{number} STOP" for number in range(32)]
    stored = await store(pool, TENANT, live, [*first, *second])
    fake.fail(Poison("STOP", code=503))
    with pytest.raises(EndpointFault):
        await embedding.embed_versions(TENANT, [stored.version_id])
    fake.heal()
    fake.forget_calls()

    async with ModelPool() as restarted:
        result = await Embedding(pool, configured, restarted).embed_versions(TENANT, [stored.version_id])

    assert result == EmbedResult(embedded=1)
    assert set(fake.embedded) == set(second)


async def test_an_unusable_model_fails_its_versions_with_a_reason(
    pool: Pool, live: str, embedding: Embedding, fake: FakeEndpoint
) -> None:
    fake.dims = 4096
    stored = await store(pool, TENANT, live, ["text"])
    assert await embedding.embed_versions(TENANT, [stored.version_id]) == EmbedResult(failed=1)
    assert "4096 dimensions" in await pool.fetchval("SELECT last_error FROM memory.derivation")


async def test_windows_are_embedded_beside_the_head(
    pool: Pool, model: EmbedModel, embedding: Embedding, configured: Settings
) -> None:
    recipe = configured.model_copy(update={"embed_max_input_tokens": 64}).default_recipe()
    generation_id = await make_generation(pool, TENANT, recipe)
    words = " ".join(f"word{number}" for number in range(150))
    inline, batch = [await store(pool, TENANT, generation_id, [words, "short"], context="title") for _ in range(2)]

    assert await embedding.embed_inline(TENANT, inline, 5) is EmbedState.EMBEDDED
    assert await embedding.embed_versions(TENANT, [batch.version_id]) == EmbedResult(embedded=1)

    for stored in (inline, batch):
        found = await vectors_of(pool, model, stored)
        long_slots = sorted(slot for chunk_id, slot in found if chunk_id == stored.chunks[0].chunk_id)
        assert long_slots == list(range(len(long_slots)))
        assert len(long_slots) > 3
        assert (stored.chunks[1].chunk_id, 1) not in found


async def test_neighbourhoods_are_embedded_where_the_recipe_has_them(
    pool: Pool, model: EmbedModel, embedding: Embedding, configured: Settings, fake: FakeEndpoint
) -> None:
    base = configured.default_recipe()
    assert base.embed is not None
    recipe = base.model_copy(update={"embed": base.embed.model_copy(update={"neighbours": True})})
    generation_id = await make_generation(pool, TENANT, recipe)
    stored = await store(pool, TENANT, generation_id, ["one", "two", "three"])

    assert await embedding.embed_versions(TENANT, [stored.version_id]) == EmbedResult(embedded=1)

    assert len(await vectors_of(pool, model, stored)) == 6
    assert fake.embedded["one\ntwo\nthree"] == 1
    assert (stored.chunks[1].chunk_id, NEIGHBOUR_SLOT) in await vectors_of(pool, model, stored)


async def test_recipes_call_the_url_that_the_registry_holds(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    stored = await store(pool, TENANT, live, ["text"])
    async with FakeEndpoint(dims=64) as moved:
        await embedding.embed_versions(TENANT, [stored.version_id])
        await pool.execute("UPDATE memory.embed_model SET base_url = $1", moved.url)
        later = await store(pool, TENANT, live, ["later"])
        await embedding.embed_versions(TENANT, [later.version_id])
        assert moved.embedded["later"] == 1
    assert fake.embedded["later"] == 0


async def test_a_query_is_embedded_once(
    pool: Pool, live: str, model: EmbedModel, embedding: Embedding, fake: FakeEndpoint
) -> None:
    resolution = await embedding.resolve(TENANT, live)
    assert resolution is not None
    assert resolution.target is not None
    fake.forget_calls()
    first = await embedding.query_vector(resolution.target, "where was it?", 5)
    second = await embedding.query_vector(resolution.target, "where was it?", 5)
    assert np.array_equal(first, second)
    assert fake.count("embed") == 1


async def test_keys_come_from_the_configuration_by_the_name_a_recipe_holds(
    pool: Pool, settings: Settings, models: ModelPool
) -> None:
    async with FakeEndpoint(dims=64, api_key="s3cret") as fake:
        keyed = Settings.model_validate(
            {
                "database_url": settings.database_url.get_secret_value(),
                "embed_base_url": fake.url,
                "embed_model": "fake",
                "embed_api_key": "s3cret",
            }
        )
        recipe = keyed.default_recipe()
        generation_id = await make_generation(pool, TENANT, recipe)
        stored = await store(pool, TENANT, generation_id, ["text"])
        assert await Embedding(pool, keyed, models).embed_versions(TENANT, [stored.version_id]) == EmbedResult(
            embedded=1
        )
        assert "s3cret" not in str(await pool.fetchval("SELECT recipe FROM memory.generation"))


async def test_embedding_logs_no_content(
    pool: Pool, live: str, embedding: Embedding, fake: FakeEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stored = await store(pool, TENANT, live, ["a CANARY text"])
    fake.fail(Poison("CANARY"))
    await embedding.embed_versions(TENANT, [stored.version_id])
    fake.heal()
    fake.fail(Status(503))
    with pytest.raises(EndpointFault) as raised:
        await embedding.embed_versions(TENANT, [stored.version_id])
    assert "CANARY" not in caplog.text
    assert "CANARY" not in str(raised.value)
