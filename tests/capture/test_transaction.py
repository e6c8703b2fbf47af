"""The transaction itself: few round trips, nothing of the network in it, the generation as it is under the lock."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from memory_plane.contracts.enums import EmbedState
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.recipe import ChunkRecipe, EmbedRecipe, Recipe
from memory_plane.plane import capture
from memory_plane.settings import Settings
from memory_plane.store import locks
from memory_plane.store.database import Pool, StatementFailed, connection, in_transaction, open_pool, transaction
from tests.capture.memory import Memory, waiting_for_locks
from tests.eventually import eventually

ENDPOINT = EmbedRecipe(base_url="http://127.0.0.1:9", model="m")


@pytest.fixture
async def single(settings: Settings) -> AsyncIterator[Memory]:
    """A memory over one connection, so that all it sends can be seen."""
    opened = await open_pool(settings, max_size=1)
    yield Memory.on(opened, settings)
    opened.terminate()


async def sent_by(memory: Memory, **fields: Any) -> list[str]:
    """The statements of one add, in order; its caller's grants have been read before."""
    sent: list[str] = []

    def note(record: asyncpg.connection.LoggedQuery) -> None:
        if record.query and "grant_rule" not in record.query:
            sent.append(" ".join(record.query.split()))

    async with connection(memory.pool) as conn:
        conn.add_query_logger(note)
    try:
        await memory.add(**fields)
    finally:
        async with connection(memory.pool) as conn:
            conn.remove_query_logger(note)
    return sent


@pytest.mark.parametrize("fields", [{}, {"text": "many words " * 50_000}], ids=["short", "long"])
async def test_a_plain_add_is_three_statements_whatever_its_size(single: Memory, fields: dict[str, Any]) -> None:
    await single.add(text="warms up")
    sent = await sent_by(single, **fields)
    assert len(sent) == 3 + len(["BEGIN", "COMMIT"]), sent


async def test_a_named_document_costs_the_question_whether_it_is_there(single: Memory) -> None:
    await single.add(text="warms up")
    assert len(await sent_by(single, external_ref="r")) == 4 + 2


async def test_a_key_costs_one_statement_more(single: Memory) -> None:
    await single.add(key="k", text="warms up")
    assert len(await sent_by(single, key="k2")) == 4 + 2


async def test_the_same_again_reads_once_more_and_writes_nothing(single: Memory) -> None:
    await single.add(external_ref="r")
    assert len(await sent_by(single, external_ref="r")) == 3 + 2


async def test_a_new_version_is_six_statements(single: Memory) -> None:
    await single.add(external_ref="r")
    assert len(await sent_by(single, external_ref="r", text="another")) == 6 + 2


async def test_the_events_are_the_last_statement(single: Memory) -> None:
    await single.add(text="warms up")
    *_, last, commit = await sent_by(single, share={"principals": ["bob"]}, entities=[{"kind": "k", "identifier": "i"}])
    assert "tenant_counter" in last
    assert commit.startswith("COMMIT")


async def test_no_connection_is_held_while_a_text_is_planned(single: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    idle: list[int] = []
    planned = vars(capture)["plan"]

    def watching(*given: Any) -> Any:
        idle.append(single.pool.get_idle_size())
        return planned(*given)

    await single.add(text="warms up")
    monkeypatch.setattr(capture, "plan", watching)
    await single.add(text="short")
    await single.add(text="long " * 20_000)
    assert idle == [1, 1]


async def make_live(pool: Pool, tenant: str, recipe: Recipe) -> str:
    """Move the tenant's pointer to a generation of this recipe, as a cut does."""
    generation_id = new_id(IdKind.GENERATION)

    async def cut(conn: Any) -> None:
        await locks.own_cutover(conn, tenant)
        await conn.execute(
            "UPDATE memory.generation SET state = 'archived' WHERE tenant_id = $1 AND state = 'live'", tenant
        )
        await conn.execute(
            "INSERT INTO memory.generation (id, tenant_id, state, recipe) VALUES ($1, $2, 'live', $3)",
            generation_id,
            tenant,
            recipe.stored(),
        )

    await in_transaction(pool, cut)
    return generation_id


@pytest.mark.parametrize("named", [{}, {"external_ref": "r"}], ids=["unnamed", "named"])
async def test_a_capture_is_planned_again_when_the_generation_has_moved(memory: Memory, named: dict[str, Any]) -> None:
    first = await memory.add(text="word " * 400)
    moved = await make_live(
        memory.pool, memory.tenant, Recipe(chunk=ChunkRecipe(max_tokens=100, min_tokens=10, overlap_tokens=0))
    )

    second = await memory.add(text="word " * 401, **named)

    assert second.chunk_count > first.chunk_count
    assert second.generation_id == moved
    assert {row["generation_id"] for row in await memory.rows("chunk", "version_id = $1", second.version_id)} == {moved}


async def test_a_capture_that_waits_for_a_cut_is_derived_under_what_it_left(wide_memory: Memory) -> None:
    await wide_memory.add()
    async with transaction(wide_memory.pool) as cut:
        await locks.own_cutover(cut, wide_memory.tenant)
        waiting = asyncio.create_task(wide_memory.add(text="while the cut goes on"))
        async with connection(wide_memory.pool) as watching:

            async def waits() -> bool:
                return await waiting_for_locks(watching, 1)

            await eventually(waits, what="the capture to wait for the cut")
        await cut.execute("UPDATE memory.generation SET state = 'archived'")
        await cut.execute(
            "INSERT INTO memory.generation (id, tenant_id, state, recipe) VALUES ('kgen_next', $1, 'live', $2)",
            wide_memory.tenant,
            Recipe(embed=ENDPOINT).stored(),
        )
    captured = await waiting

    assert (captured.generation_id, captured.embed_state) == ("kgen_next", EmbedState.PENDING)
    assert await wide_memory.count("derivation", "version_id = $1", captured.version_id) == 1


async def test_a_recipe_that_got_an_endpoint_in_place_is_seen_at_once(memory: Memory) -> None:
    assert (await memory.add()).embed_state is EmbedState.NOT_CONFIGURED
    await memory.pool.execute("UPDATE memory.generation SET recipe = $1", Recipe(embed=ENDPOINT).stored())

    captured = await memory.add()

    assert captured.embed_state is EmbedState.PENDING
    assert [chunk.text_to_embed for chunk in captured.chunks] == ["A title\nA text."]


async def test_the_environment_makes_the_first_generation_and_changes_none_after(
    memory: Memory, settings: Settings
) -> None:
    first = await memory.add()
    later = settings.model_copy(update={"embed_base_url": "http://127.0.0.1:9", "embed_model": "m"})

    second = await memory.restarted(later).add()

    assert second.generation_id == first.generation_id
    assert second.embed_state is EmbedState.NOT_CONFIGURED
    (generation,) = await memory.rows("generation")
    assert Recipe.model_validate(generation["recipe"]) == settings.default_recipe()


async def test_an_error_of_the_database_carries_no_content(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    await memory.pool.execute("ALTER TABLE memory.chunk ADD CONSTRAINT quiet CHECK (text NOT LIKE '%canary%')")
    try:
        with pytest.raises(StatementFailed) as failed:
            await memory.add(title="a canary", text="the canary sings")
    finally:
        await memory.pool.execute("ALTER TABLE memory.chunk DROP CONSTRAINT quiet")
    assert "canary" not in str(failed.value)
    assert "23514" in str(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__
    assert "canary" not in caplog.text


async def test_a_captures_chunks_are_not_in_its_repr(memory: Memory) -> None:
    await make_live(memory.pool, memory.tenant, Recipe(embed=ENDPOINT))
    captured = await memory.add(text="the canary sings")
    assert captured.chunks
    assert "canary" not in repr(captured)
