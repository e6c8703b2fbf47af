"""IngestWorkflow on the real server and a real database, with an endpoint that fails on purpose."""

from temporalio.client import Client

from api.starter import TemporalStarter
from memory_plane.contracts import names
from memory_plane.contracts.workflows import IngestResult
from memory_plane.plane.engine import Engine
from tests.embedding.corpus import embed_state, make_generation, store
from tests.fakes.endpoint import FakeEndpoint
from tests.workflows.conftest import RunWorkers

TENANT = "acme"


async def live(engine: Engine) -> str:
    return await make_generation(engine.pool, TENANT, engine.settings.default_recipe())


async def test_what_was_captured_is_embedded(
    engine: Engine, client: Client, starter: TemporalStarter, workers: RunWorkers
) -> None:
    stored = await store(engine.pool, TENANT, await live(engine), ["one", "two"])

    async with workers():
        await starter.start_ingest(TENANT, [stored.version_id])
        assert await starter.wait_ingest(TENANT, [stored.version_id], 30)

    assert await embed_state(engine.pool, stored.version_id) == "embedded"
    handle = client.get_workflow_handle(names.ingest_id(TENANT, stored.version_id), result_type=IngestResult)
    assert await handle.result() == IngestResult(
        document_id=stored.document_id, version_id=stored.version_id, chunks=2, embedded=1
    )
