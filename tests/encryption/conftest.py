"""A Temporal server of its own: the session's one is judged at its end by who has no keys."""

import base64
from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

import schedules
from api.starter import TemporalStarter
from memory_plane.dev.temporal import TemporalServer
from memory_plane.settings import Settings
from memory_plane.temporal import connect
from tests.workflows.conftest import configured, engine, fake, workers

__all__ = ["configured", "engine", "fake", "workers"]


def key(letter: str) -> str:
    return base64.b64encode(letter.encode() * 32).decode()


def with_keys(settings: Settings, server: TemporalServer, keys: str) -> Settings:
    """As `settings`, at this server, with these keys."""
    values = settings.model_dump(exclude_unset=True) | {
        "temporal_address": server.address,
        "temporal_namespace": server.namespace,
        "memory_payload_keys": keys,
    }
    return Settings.model_validate(values)


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalServer]:
    running = TemporalServer(tmp_path_factory.mktemp("encrypted"))
    await running.start()
    yield running
    await running.kill()


@pytest.fixture
def encrypting(configured: Settings, server: TemporalServer) -> Settings:
    return with_keys(configured, server, f"2026:{key('a')}")


@pytest.fixture
async def client(encrypting: Settings) -> Client:
    connected = await connect(encrypting)
    await schedules.register_search_attributes(connected)
    return connected


@pytest.fixture
def starter(client: Client) -> TemporalStarter:
    return TemporalStarter(client)
