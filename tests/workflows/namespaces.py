"""A Temporal namespace for each test: what one leaves running is no other's to pick up."""

from datetime import timedelta
from uuid import uuid4

from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

import schedules
from memory_plane.dev.temporal import TemporalServer
from memory_plane.temporal import DATA_CONVERTER
from tests.eventually import eventually

RETENTION = Duration()
RETENTION.FromTimedelta(timedelta(days=1))


async def new_namespace(server: TemporalServer) -> Client:
    name = f"test-{uuid4().hex[:12]}"
    admin = await server.client()
    await admin.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=RETENTION)
    )
    client = await Client.connect(server.address, namespace=name, data_converter=DATA_CONVERTER)

    async def usable() -> bool:
        try:
            await schedules.register_search_attributes(client)
            await client.count_workflows("MemoryTenant = 'nobody'")
        except RPCError:
            return False
        return True

    await eventually(usable, what="the namespace to be usable")
    return client
