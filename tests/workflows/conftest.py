"""The worker as it is composed, in this process, on a namespace and a database of the test's own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from temporalio.client import Client
from temporalio.worker import Interceptor, Worker

import worker
from api.starter import TemporalStarter
from memory_plane.dev.temporal import TemporalServer
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from tests.fakes.endpoint import FakeEndpoint
from tests.workflows.namespaces import new_namespace

RunWorkers = Callable[[], AbstractAsyncContextManager[list[Worker]]]


@pytest.fixture
async def fake() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(dims=64) as endpoint:
        yield endpoint


@pytest.fixture
async def client(temporal_server: TemporalServer) -> Client:
    """A client on a namespace that this test has to itself, with the search attributes registered."""
    return await new_namespace(temporal_server)


@pytest.fixture
def configured(settings: Settings, fake: FakeEndpoint) -> Settings:
    return settings.model_copy(update={"embed_base_url": fake.url, "embed_model": "fake", "embed_timeout_ms": 2000})


@pytest.fixture
def starter(client: Client) -> TemporalStarter:
    return TemporalStarter(client)


@pytest.fixture
async def engine(configured: Settings, starter: TemporalStarter) -> AsyncIterator[Engine]:
    async with Engine.open(configured, starter=starter) as opened:
        await opened.embedding.ensure_engine_model()
        yield opened


@pytest.fixture
def workers(client: Client, engine: Engine) -> RunWorkers:
    """Runs the workers of the composition while the block lasts."""

    return lambda: running_workers(client, engine)


@asynccontextmanager
async def running_workers(
    client: Client, engine: Engine, *, max_cached_workflows: int = 1000, interceptors: Sequence[Interceptor] = ()
) -> AsyncIterator[list[Worker]]:
    built = worker.build(client, engine, max_cached_workflows=max_cached_workflows, interceptors=interceptors)
    running = [asyncio.create_task(each.run()) for each in built]
    try:
        yield built
    finally:
        await asyncio.gather(*(each.shutdown() for each in built))
        await asyncio.gather(*running)
