"""Starting ingests: joined when they run, cheap when Temporal is down."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from api.starter import TemporalStarter, open_starter
from memory_plane.contracts import names
from memory_plane.contracts.errors import Unavailable
from memory_plane.dev.ports import free_port
from memory_plane.plane.ports import HealthChecked
from memory_plane.settings import Settings


class DeadClient:
    """Counts what reaches it."""

    def __init__(self) -> None:
        self.starts = 0

    async def start_workflow(self, *arguments: object, **options: object) -> None:
        self.starts += 1
        raise RPCError("unavailable", RPCStatusCode.UNAVAILABLE, b"")


async def test_a_dead_server_is_asked_twice_and_then_left_alone() -> None:
    client: Any = DeadClient()
    starter = TemporalStarter(client)
    for _ in range(20):
        with pytest.raises(Unavailable, match="ingested later"):
            await starter.start_ingest("acme", ["kver_1"])
    assert client.starts == 2


@pytest.fixture
async def nobody_there(settings: Settings) -> AsyncIterator[TemporalStarter]:
    address = f"127.0.0.1:{free_port()}"
    async with open_starter(settings.model_copy(update={"temporal_address": address})) as starter:
        yield starter


async def test_a_process_starts_while_temporal_is_down(nobody_there: TemporalStarter) -> None:
    with pytest.raises(Unavailable):
        await nobody_there.start_ingest("acme", ["kver_1"])
    with pytest.raises(Unavailable):
        await nobody_there.wait_ingest("acme", ["kver_1"], 1)
    with pytest.raises(OSError, match="cannot be reached"):
        await nobody_there.check_health()
    assert isinstance(nobody_there, HealthChecked)


async def test_health_is_told(starter: TemporalStarter) -> None:
    await starter.check_health()


@pytest.mark.parametrize("tenant", ["acme", "t" * 200, "mieter-ü" * 20])
async def test_tenants_of_any_name_are_taken(client: Client, starter: TemporalStarter, tenant: str) -> None:
    await starter.start_ingest(tenant, ["kver_1"])
    described = await client.get_workflow_handle(names.ingest_id(tenant, "kver_1")).describe()
    key = described.raw_description.workflow_execution_info.priority.fairness_key
    assert key == names.fairness_key(tenant)
    assert 0 < len(key.encode()) <= 64


async def test_a_batch_and_a_single_have_their_ids(client: Client, starter: TemporalStarter) -> None:
    await starter.start_ingest("acme", ["kver_1"])
    await starter.start_ingest("acme", ["kver_1", "kver_2"])
    running = {each.id async for each in client.list_workflows()} | {
        (await client.get_workflow_handle(each).describe()).id
        for each in ("memory-ingest/acme/kver_1", "memory-ingest/acme/batch/kver_1")
    }
    assert running >= {"memory-ingest/acme/kver_1", "memory-ingest/acme/batch/kver_1"}
