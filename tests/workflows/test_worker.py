"""The worker as a process: its start, its end, and a kill in between."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

import worker
from api.starter import TemporalStarter
from memory_plane.contracts import names
from memory_plane.contracts.workflows import IngestResult
from memory_plane.dev.checkout import checkout
from memory_plane.dev.child import Child, Command
from memory_plane.dev.ports import free_port
from memory_plane.dev.temporal import temporal_program
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from tests.embedding.corpus import embed_state, make_generation, store
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.workflows import bad_import
from tests.workflows.conftest import running_workers

TENANT = "acme"
Start = Callable[..., Awaitable[Child]]


@pytest.fixture
async def start(configured: Settings, client: Client, fake: FakeEndpoint, tmp_path: Path) -> AsyncIterator[Start]:
    """Starts a worker process on this test's database, namespace and endpoint; `log` is its output."""
    children: list[Child] = []
    environment = {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": configured.database_url.get_secret_value(),
        "TEMPORAL_ADDRESS": client.service_client.config.target_host,
        "TEMPORAL_NAMESPACE": client.namespace,
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "EMBED_BASE_URL": fake.url,
        "EMBED_MODEL": "fake",
    }

    async def run(variables: Mapping[str, str] | None = None) -> Child:
        child = await Child.start(
            Command(
                name="worker",
                argv=(sys.executable, str(checkout() / "worker.py")),
                log=tmp_path / "worker.log",
                env={**environment, **(variables or {})},
            )
        )
        children.append(child)
        return child

    yield run
    for child in children:
        await child.stop()


@pytest.fixture
def log(tmp_path: Path) -> Callable[[], str]:
    return lambda: (tmp_path / "worker.log").read_text()


async def test_inv_06_killed_in_the_middle_of_an_embed_another_worker_finishes(
    engine: Engine, client: Client, starter: TemporalStarter, start: Start, fake: FakeEndpoint
) -> None:
    generation = await make_generation(engine.pool, TENANT, engine.settings.default_recipe())
    stored = await store(engine.pool, TENANT, generation, [f"text {number}" for number in range(40)])
    hold = fake.hold(on="embed")
    first = await start()
    await starter.start_ingest(TENANT, [stored.version_id])
    await hold.reached(1)
    await first.kill()
    hold.release()

    await start()
    handle = client.get_workflow_handle(names.ingest_id(TENANT, stored.version_id), result_type=IngestResult)
    assert (await handle.result()).embedded == 1

    assert await embed_state(engine.pool, stored.version_id) == "embedded"
    assert max(fake.embedded[text] for text in fake.embedded if text.startswith("text")) <= 2


async def test_sigterm_ends_it_cleanly(start: Start, client: Client, log: Callable[[], str]) -> None:
    child = await start()

    async def registered() -> bool:
        return "embedding model registered" in log()

    await eventually(registered, what="the worker to have started")
    os.kill(child.pid, signal.SIGTERM)
    assert await asyncio.wait_for(child.wait(), 30) == 0


async def test_an_endpoint_that_is_down_does_not_keep_it_from_starting(
    start: Start, engine: Engine, starter: TemporalStarter, fake: FakeEndpoint, log: Callable[[], str]
) -> None:
    await engine.pool.execute("TRUNCATE memory.embed_model")
    await fake.stop()
    await start()

    async def waits() -> bool:
        return "the embedding model is not registered yet" in log()

    await eventually(waits, what="the worker to wait for the endpoint")
    await fake.start(fake.port)

    async def registered() -> bool:
        return bool(await engine.pool.fetchval("SELECT count(*) FROM memory.embed_model WHERE tenant_id = ''"))

    await eventually(registered, what="the model to be registered once the endpoint is back")


async def test_it_waits_for_temporal(start: Start, log: Callable[[], str]) -> None:
    child = await start({"TEMPORAL_ADDRESS": f"127.0.0.1:{free_port()}"})

    async def waits() -> bool:
        return "cannot be reached; trying again" in log()

    await eventually(waits, what="the worker to wait for Temporal")
    os.kill(child.pid, signal.SIGTERM)
    assert await asyncio.wait_for(child.wait(), 30) == 0


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"FTS_LANGUAGE": "german"}, "german"),
        ({"EMBED_BASE_URL": "ftp://x"}, "EMBED_BASE_URL"),
        ({"DATABASE_URL": ""}, "DATABASE_URL must be set"),
    ],
)
async def test_what_cannot_work_ends_it_with_a_sentence(
    start: Start, log: Callable[[], str], variables: dict[str, str], says: str
) -> None:
    child = await start(variables)
    assert await asyncio.wait_for(child.wait(), 60) == 1
    assert "The worker cannot start" in log()
    assert says in log()


async def test_a_workflow_that_imports_a_driver_stops_the_worker_at_its_start(client: Client) -> None:
    with pytest.raises(RuntimeError) as raised:
        Worker(client, task_queue="bad", workflows=[bad_import.BadImportWorkflow], workflow_runner=worker.SANDBOX)
    assert "asyncpg was not intentionally passed through" in str(raised.value.__cause__)


async def test_with_a_build_id_work_begins_once_the_deploy_step_has_made_it_current(
    configured: Settings, client: Client, starter: TemporalStarter
) -> None:
    async with Engine.open(configured.model_copy(update={"memory_build_id": "b1"}), starter=starter) as engine:
        generation = await make_generation(engine.pool, TENANT, engine.settings.default_recipe())
        stored = await store(engine.pool, TENANT, generation, ["text"])
        async with running_workers(client, engine):
            await starter.start_ingest(TENANT, [stored.version_id])
            for command in re.findall(r"^temporal (worker deployment .*)$", GUIDE, re.MULTILINE):
                await eventually(partial(told, client, command, "b1"), what=f"the guide's command: {command}")
            assert await starter.wait_ingest(TENANT, [stored.version_id], 60)
        described = await client.get_workflow_handle(names.ingest_id(TENANT, stored.version_id)).describe()
        versioning = described.raw_description.workflow_execution_info.versioning_info
        assert versioning.deployment_version.build_id == "b1"


GUIDE = (checkout() / "docs" / "operations" / "upgrades.md").read_text()


async def told(client: Client, command: str, build_id: str) -> bool:
    """Whether this command of the guide does it."""
    where = ("--address", client.service_client.config.target_host, "--namespace", client.namespace)
    words = [word.replace('"$BUILD_ID"', build_id) for word in command.split()]
    process = await asyncio.create_subprocess_exec(
        *(str(await temporal_program()), *words, *where),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    return await process.wait() == 0


def test_every_workflow_has_its_name_on_the_wire() -> None:
    defined = {workflow._Definition.must_from_class(each).name for each in worker.WORKFLOWS}
    assert {names.INGEST, names.RECONCILE, names.REEMBED} <= defined
