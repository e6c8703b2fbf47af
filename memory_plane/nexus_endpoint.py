"""The Nexus endpoint that leads hosts of other namespaces to our task queue."""

from typing import Literal

from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest, ListNexusEndpointsRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from memory_plane.contracts.names import NEXUS_ENDPOINT, QUEUE

_NOT_OURS_TO_MAKE = (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.FAILED_PRECONDITION)


async def ensure_endpoint(client: Client, name: str = NEXUS_ENDPOINT) -> Literal["ready", "elsewhere", "refused"]:
    """Make the endpoint unless it is there. One that leads elsewhere is another installation's, and is left alone;
    `refused` where the server lets nobody, or not us, make one. Raises RPCError (a RuntimeError)."""
    target = EndpointTarget(worker=EndpointTarget.Worker(namespace=client.namespace, task_queue=QUEUE))
    try:
        await client.operator_service.create_nexus_endpoint(
            CreateNexusEndpointRequest(spec=EndpointSpec(name=name, target=target))
        )
    except RPCError as error:
        if error.status in _NOT_OURS_TO_MAKE:
            return "refused"
        if error.status != RPCStatusCode.ALREADY_EXISTS:
            raise
        found = await client.operator_service.list_nexus_endpoints(ListNexusEndpointsRequest(name=name))
        if any(each.spec.target != target for each in found.endpoints):
            return "elsewhere"
    return "ready"
