"""The registry of models and their tables."""

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from memory_plane.contracts.enums import EmbedStyle
from memory_plane.contracts.errors import Conflict, Invalid
from memory_plane.contracts.recipe import EmbedRecipe, Recipe
from memory_plane.models.errors import EndpointMisconfigured, ModelUnusable
from memory_plane.plane.embedding import Embedding
from memory_plane.settings import Settings
from memory_plane.store import derivations, embed_models, vectors
from memory_plane.store.database import Connection, Pool
from memory_plane.store.embed_models import ENGINE, ModelProbe, model_by_key, model_for
from memory_plane.store.model_tables import BuildProgress, build_index, index_is_valid, register_model
from tests.embedding.corpus import make_generation
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint

URL = "http://models.example:8080"
PROBE = ModelProbe(URL, "m", EmbedStyle.OPENAI, 64)


async def test_one_table_whoever_registers_first(database: str, pool: Pool) -> None:
    tenants = [f"t{number}" for number in range(12)]
    models = await asyncio.gather(*(register_model(database, tenant, PROBE) for tenant in tenants))

    assert len({model.table for model in models}) == 1
    assert {model.tenant_id for model in models} == set(tenants)
    assert await pool.fetchval("SELECT count(*) FROM memory.embed_model") == 12
    async with pool.acquire() as conn:
        assert await index_is_valid(conn, models[0].table) is True


async def test_the_engines_own_row_serves_tenants_without_one(database: str, pool: Pool) -> None:
    engine = await register_model(database, ENGINE, PROBE)

    async with pool.acquire() as conn:
        assert await model_for(conn, "t1", URL + "/v1/", "m") == engine
        assert await model_for(conn, "t1", URL, "another") is None
        own = await register_model(database, "t1", PROBE)
        assert await model_for(conn, "t1", URL, "m") == own
        assert own.model_key == engine.model_key


async def test_the_key_of_a_model_survives_the_move_of_its_endpoint(database: str, pool: Pool) -> None:
    before = await register_model(database, "t1", PROBE)
    recipe = Recipe(embed=EmbedRecipe(base_url=URL, model="m"))
    generation_id = await make_generation(pool, "t1", recipe)

    async with pool.acquire() as conn, conn.transaction():
        assert await embed_models.move_endpoint(conn, URL, "http://elsewhere:1") == 1

    async with pool.acquire() as conn:
        moved = await model_for(conn, "t1", "http://elsewhere:1", "m")
        assert moved is not None
        assert (moved.model_key, moved.table) == (before.model_key, before.table)
        # The generation had found its model by the old URL alone.
        generation = await derivations.generation(conn, "t1", generation_id)
        assert generation is not None
        assert generation.model_key == before.model_key
        assert await model_by_key(conn, "t1", before.model_key) == moved
    # Another model that is served at the old URL later gets a key, and a table, of its own.
    newcomer = await register_model(database, "t1", ModelProbe(URL, "m", EmbedStyle.OPENAI, 128))
    assert newcomer.table != before.table


async def test_an_endpoint_is_not_moved_onto_a_registered_model(database: str, pool: Pool) -> None:
    await register_model(database, "t1", PROBE)
    await register_model(database, "t1", ModelProbe("http://elsewhere:1", "m", EmbedStyle.OPENAI, 64))

    async with pool.acquire() as conn, conn.transaction():
        with pytest.raises(Conflict, match="registered at the new one already"):
            await embed_models.move_endpoint(conn, URL, "http://elsewhere:1")


async def test_dims_that_changed_under_a_name_are_refused(database: str) -> None:
    await register_model(database, "t1", PROBE)

    with pytest.raises(Conflict, match="another model is served under its name"):
        await register_model(database, "t2", ModelProbe(URL, "m", EmbedStyle.OPENAI, 128))


async def test_a_model_above_4000_dims_is_refused_with_a_sentence(embedding: Embedding, fake: FakeEndpoint) -> None:
    fake.dims = 4096

    with pytest.raises(ModelUnusable, match="4096 dimensions; 64 to 4000 can be indexed"):
        await embedding.ensure_engine_model()


async def test_a_changed_model_is_an_endpoint_to_put_right(
    embedding: Embedding, configured: Settings, fake: FakeEndpoint
) -> None:
    await embedding.ensure_engine_model()
    fake.dims = 128
    recipe = configured.default_recipe().embed
    assert recipe is not None

    with pytest.raises(EndpointMisconfigured, match="now answers vectors of 128 dimensions"):
        await embedding.ensure_model("t1", recipe)


@pytest.mark.parametrize("dims", [64, 768, 2000, 2001, 3072, 4000])
async def test_every_size_is_served_by_its_index(database: str, pool: Pool, dims: int) -> None:
    model = await register_model(database, "t1", ModelProbe(URL, "m", EmbedStyle.OPENAI, dims))

    async with pool.acquire() as conn:
        await conn.execute("SET enable_seqscan = off")
        vector = "'[1" + ",0" * (dims - 1) + "]'"
        plan = await conn.fetch(
            f"EXPLAIN SELECT chunk_id FROM memory.{model.table} e ORDER BY {vectors.distance_sql(dims, vector)} LIMIT 5"
        )
    assert vectors.index_name(model.table) in "\n".join(row[0] for row in plan)


@pytest.mark.parametrize(
    "name", ["embedding_0123456789abcde", "embedding_0123456789abcdef; DROP", "chunk", "embedding_0123456789ABCDEF"]
)
def test_only_names_of_vector_tables_are_spliced(name: str) -> None:
    with pytest.raises(Invalid, match="not one of ours"):
        vectors.checked_table(name)


async def test_registering_waits_for_a_long_writer_without_keeping_others_out(
    database: str, pool: Pool, connect: Callable[[], Awaitable[Connection]]
) -> None:
    writer = await connect()
    transaction = writer.transaction()
    await transaction.start()
    await writer.execute("LOCK TABLE memory.chunk IN ROW EXCLUSIVE MODE")  # what every capture holds

    registering = asyncio.create_task(register_model(database, "t1", PROBE))
    await eventually(lambda: _waits_for_chunk(pool), what="the registration to wait for the writer")
    other = await connect()
    await other.execute("SET lock_timeout = '5s'")
    async with other.transaction():  # gets in as soon as the registration gives up its turn
        await other.execute("LOCK TABLE memory.chunk IN ROW EXCLUSIVE MODE")
    await transaction.rollback()
    assert (await registering).dims == 64


async def _waits_for_chunk(pool: Pool) -> bool:
    waiting: bool = await pool.fetchval(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'memory.chunk'::regclass AND NOT granted)"
    )
    return waiting


async def test_a_staged_models_index_is_built_after_it_is_filled(database: str, pool: Pool) -> None:
    model = await register_model(database, "t1", PROBE, indexed=False)
    seen: list[BuildProgress] = []

    async with pool.acquire() as conn:
        assert await index_is_valid(conn, model.table) is None
        assert await build_index(database, model.table, model.dims, seen.append) is True
        assert await index_is_valid(conn, model.table) is True
    assert seen
    assert await build_index(database, model.table, model.dims, seen.append) is False


async def test_an_index_that_a_broken_build_left_is_built_anew(
    database: str, pool: Pool, connect: Callable[[], Awaitable[Connection]]
) -> None:
    model = await register_model(database, "t1", PROBE, indexed=False)
    reader = await connect()
    snapshot = reader.transaction(isolation="repeatable_read")
    await snapshot.start()
    await reader.fetchval("SELECT count(*) FROM memory.document")  # a concurrent build waits for this snapshot

    build = asyncio.create_task(build_index(database, model.table, model.dims, lambda progress: None))
    async with pool.acquire() as conn:

        async def begun() -> bool:
            return await index_is_valid(conn, model.table) is not None

        await eventually(begun, what="the build to begin")
        build.cancel()
        with pytest.raises(asyncio.CancelledError):
            await build
        assert await index_is_valid(conn, model.table) is False
        await snapshot.rollback()
        assert await build_index(database, model.table, model.dims, lambda progress: None) is True
        assert await index_is_valid(conn, model.table) is True


async def test_the_registry_refuses_a_table_name_that_is_not_ours(pool: Pool) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await pool.execute(
            "INSERT INTO memory.embed_model (tenant_id, model_key, base_url, model, style, dims, table_name) "
            "VALUES ('t', '0123456789abcdef', 'http://x', 'm', 'openai', 64, 'chunk')"
        )
