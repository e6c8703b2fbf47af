"""An endpoint moves: the same model is found at the new URL, another one is refused."""

import pytest

from memory_plane.contracts.errors import Conflict, NotFound
from memory_plane.contracts.workflows import EmbedResult
from memory_plane.models.errors import EndpointFault
from memory_plane.models.pool import ModelPool
from memory_plane.plane.embedding import Embedding
from memory_plane.plane.endpoint_move import EndpointMove, Moved
from memory_plane.settings import Settings
from memory_plane.store.database import Pool
from tests.embedding.corpus import make_generation, store
from tests.fakes.endpoint import Call, FakeEndpoint
from tests.fakes.faults import Fault
from tests.fakes.http_server import Reply

TENANT = "acme"


@pytest.fixture
async def embedded(pool: Pool, configured: Settings, embedding: Embedding) -> str:
    """A generation with some vectors made by the old endpoint."""
    generation_id = await make_generation(pool, TENANT, configured.default_recipe())
    stored = await store(pool, TENANT, generation_id, [f"text {number}" for number in range(30)], context="a title")
    assert await embedding.embed_versions(TENANT, [stored.version_id]) == EmbedResult(embedded=1)
    return generation_id


async def test_the_same_model_elsewhere_is_moved_to(
    pool: Pool, configured: Settings, models: ModelPool, fake: FakeEndpoint, embedded: str
) -> None:
    async with FakeEndpoint(dims=64) as elsewhere:
        moved = await EndpointMove(pool, configured, models).move(fake.url, elsewhere.url + "/v1/")
        assert moved == Moved(models=1, compared=20, rows=1)
        await fake.stop()
        later = await store(pool, TENANT, embedded, ["later"])
        assert await Embedding(pool, configured, models).embed_versions(TENANT, [later.version_id]) == EmbedResult(
            embedded=1
        )
        assert elsewhere.embedded["later"] == 1


class OtherModel(FakeEndpoint):
    """Serves another model under every name."""

    def _embed(self, call: Call, model: str, fault: Fault | None) -> Reply:
        return super()._embed(call, "another", fault)


@pytest.mark.parametrize("elsewhere", [OtherModel(dims=64), FakeEndpoint(dims=128)])
async def test_another_model_is_refused_and_nothing_is_changed(
    pool: Pool, configured: Settings, models: ModelPool, fake: FakeEndpoint, embedded: str, elsewhere: FakeEndpoint
) -> None:
    async with elsewhere:
        with pytest.raises(Conflict, match="another model"):
            await EndpointMove(pool, configured, models).move(fake.url, elsewhere.url)
    assert await pool.fetchval("SELECT DISTINCT base_url FROM memory.embed_model") == fake.url


async def test_an_endpoint_that_does_not_answer_is_not_moved_to(
    pool: Pool, configured: Settings, models: ModelPool, fake: FakeEndpoint, embedded: str
) -> None:
    async with FakeEndpoint(dims=64) as elsewhere:
        url = elsewhere.url
    with pytest.raises(EndpointFault):
        await EndpointMove(pool, configured, models).move(fake.url, url)


async def test_an_unknown_url_is_said_to_be_unknown(pool: Pool, configured: Settings, models: ModelPool) -> None:
    with pytest.raises(NotFound, match="No embedding model is registered"):
        await EndpointMove(pool, configured, models).move("http://nowhere", "http://elsewhere")
