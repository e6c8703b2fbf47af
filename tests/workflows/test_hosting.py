"""Hosts without HTTP: activities on our queue, ingest as a child by name, and the Nexus service from elsewhere."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.exceptions import ActivityError, ApplicationError, NexusOperationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from memory_plane.contracts import hosting, names
from memory_plane.contracts.hosting import HostAdd, HostFeed, HostList, HostSearch
from memory_plane.contracts.nexus import MemoryService
from memory_plane.contracts.wire import AddFields, AddRequest, AddResponse, FeedResponse, SearchRequest, SearchResponse
from memory_plane.contracts.workflows import Identity, IngestInput, IngestResult
from memory_plane.dev.temporal import TemporalServer
from memory_plane.nexus_endpoint import ensure_endpoint
from memory_plane.plane.engine import Engine
from tests.distilling.notes import Notes
from tests.workflows.conftest import RunWorkers
from tests.workflows.namespaces import new_namespace

TENANT = "acme"
ALICE = Identity(tenant_id=TENANT, principal_id="alice")
TEXT = "The kettle is blue."
BOUND = timedelta(seconds=60)

Told = dict[str, Any]


@workflow.defn(name="HostWorkflow")
class HostWorkflow:
    """As a host would have it in our namespace: it knows the contracts alone."""

    @workflow.run
    async def run(self, principal: str) -> Told:
        who = Identity(tenant_id=TENANT, principal_id=principal)
        added = await self._call(
            hosting.ACTIVITY_ADD,
            HostAdd(identity=who, document=AddRequest(title="Kettle", text=TEXT, external_ref="kettle")),
            AddResponse,
        )
        found = await self._call(
            hosting.ACTIVITY_SEARCH, HostSearch(identity=who, request=SearchRequest(query="kettle")), SearchResponse
        )
        fed = await self._call(hosting.ACTIVITY_FEED, HostFeed(identity=who), FeedResponse)
        listed = await self._call(hosting.ACTIVITY_LIST, HostList(identity=who), dict)
        ingested = await workflow.execute_child_workflow(
            names.INGEST,
            IngestInput(
                tenant_id=TENANT, principal_id=principal, document=AddFields(title="Cup", text="The cup is red.")
            ),
            id=f"host-ingest-{workflow.info().workflow_id}",
            task_queue=names.QUEUE,
            result_type=IngestResult,
        )
        return {
            "added": added.document_id,
            "found": [item.document_id for item in found.items],
            "fed": [entry.version_id for entry in fed.entries],
            "listed": [event["documentId"] for event in listed["events"]],
            "ingested": ingested.model_dump(),
        }

    async def _call(self, name: str, given: Any, result: type) -> Any:
        return await workflow.execute_activity(
            name, given, task_queue=names.QUEUE, result_type=result, start_to_close_timeout=timedelta(seconds=30)
        )


@workflow.defn(name="RefusedHost")
class RefusedHost:
    @workflow.run
    async def run(self, given: Told) -> str:
        try:
            await workflow.execute_activity(
                given["activity"], given["input"], task_queue=names.QUEUE, start_to_close_timeout=timedelta(seconds=30)
            )
        except ActivityError as error:
            assert isinstance(error.cause, ApplicationError)
            return f"{error.cause.type}: {error.cause.message}"
        return "done"


@workflow.defn(name="NexusHost")
class NexusHost:
    """In a namespace of its own."""

    @workflow.run
    async def run(self, endpoint: str) -> Told:
        memory = workflow.create_nexus_client(service=MemoryService, endpoint=endpoint)
        added = await memory.execute_operation(
            MemoryService.add,
            HostAdd(identity=ALICE, document=AddRequest(title="Kettle", text=TEXT)),
            schedule_to_close_timeout=BOUND,
        )
        found = await memory.execute_operation(
            MemoryService.search,
            HostSearch(identity=ALICE, request=SearchRequest(query="kettle")),
            schedule_to_close_timeout=BOUND,
        )
        listed = await memory.execute_operation(
            MemoryService.list, HostList(identity=ALICE), schedule_to_close_timeout=BOUND
        )
        fed = await memory.execute_operation(
            MemoryService.feed, HostFeed(identity=ALICE), schedule_to_close_timeout=BOUND
        )
        ingested = await memory.execute_operation(
            MemoryService.ingest,
            IngestInput(tenant_id=TENANT, principal_id="alice", document=AddFields(title="Cup", text="Red.")),
            schedule_to_close_timeout=BOUND,
        )
        try:
            stranger = Identity(tenant_id=TENANT, principal_id="stranger")
            await memory.execute_operation(
                MemoryService.search,
                HostSearch(identity=stranger, request=SearchRequest(query="kettle")),
                schedule_to_close_timeout=BOUND,
            )
            refused = "nothing was refused"
        except NexusOperationError as error:
            refused = str(error.__cause__)
        return {
            "added": added.document_id,
            "found": [item.document_id for item in found.items],
            "listed": [event.document_id for event in listed.events],
            "fed": [entry.version_id for entry in fed.entries],
            "ingested": ingested.model_dump(),
            "refused": refused,
        }


async def run_host(client: Client, host: type, given: Any) -> Any:
    queue = f"host-{uuid4().hex[:8]}"
    async with Worker(client, task_queue=queue, workflows=[host], workflow_runner=UnsandboxedWorkflowRunner()):
        return await client.execute_workflow(
            host.run,  # type: ignore[attr-defined]
            given,
            id=queue,
            task_queue=queue,
            execution_timeout=timedelta(seconds=90),
        )


@pytest.fixture
async def notes(engine: Engine) -> Notes:
    return await Notes.of(engine, TENANT)


async def test_a_host_uses_the_memory_by_activities_and_ingests_by_a_child(
    client: Client, workers: RunWorkers, notes: Notes
) -> None:
    async with workers():
        told = await run_host(client, HostWorkflow, "alice")
    assert told["found"] == told["listed"] == [told["added"]]
    assert len(told["fed"]) == 1
    assert (told["ingested"]["status"], told["ingested"]["embedded"]) == ("captured", 1)


async def test_two_attempts_of_one_add_capture_once(engine: Engine, notes: Notes) -> None:
    given = {"identity": ALICE.model_dump(), "document": {"title": "Kettle", "text": TEXT, "kind": "note"}}
    first = await engine.hosting.add(given, "the same call")
    assert await engine.hosting.add(given, "the same call") == first
    assert await engine.pool.fetchval("SELECT count(*) FROM memory.version") == 1


@pytest.mark.parametrize(
    ("principal", "request_", "refusal"),
    [
        ("stranger", {"query": "x"}, "capability_missing"),
        ("alice", {"query": "x", "limt": 3}, "invalid"),
        ("alice", {"query": ""}, "blank"),
        ("a*", {"query": "x"}, "identity"),
    ],
)
async def test_refusals_are_typed_and_not_tried_again(
    client: Client, workers: RunWorkers, notes: Notes, principal: str, request_: Told, refusal: str
) -> None:
    identity = {"tenant_id": TENANT, "principal_id": principal}
    async with workers():
        told = await run_host(
            client,
            RefusedHost,
            {"activity": hosting.ACTIVITY_SEARCH, "input": {"identity": identity, "request": request_}},
        )
    assert told.startswith(f"{refusal}: "), told


async def test_a_host_of_another_namespace_uses_the_nexus_service(
    temporal_server: TemporalServer, client: Client, workers: RunWorkers, notes: Notes
) -> None:
    elsewhere = await new_namespace(temporal_server)
    endpoint = f"memory-{uuid4().hex[:8]}"
    assert await ensure_endpoint(client, endpoint) == "ready"
    assert await ensure_endpoint(client, endpoint) == "ready"
    assert await ensure_endpoint(elsewhere, endpoint) == "elsewhere"
    async with workers():
        told = await run_host(elsewhere, NexusHost, endpoint)
    assert told["found"] == told["listed"] == [told["added"]]
    assert len(told["fed"]) == 1
    assert told["ingested"]["embedded"] == 1
    assert "memory:search is missing" in told["refused"]
