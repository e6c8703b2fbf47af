"""The Nexus service `memory`, for hosts in other namespaces: `workflow.create_nexus_client(service=MemoryService,
endpoint=NEXUS_ENDPOINT)`."""

import nexusrpc

from memory_plane.contracts.hosting import HostAdd, HostFeed, HostList, HostSearch
from memory_plane.contracts.names import SERVICE
from memory_plane.contracts.wire import AddResponse, FeedResponse, ListResponse, SearchResponse
from memory_plane.contracts.workflows import IngestInput, IngestResult


@nexusrpc.service(name=SERVICE)
class MemoryService:
    """Refusals arrive as handler errors that no retry cures; `ingest` is a workflow and may take as long as it does."""

    search: nexusrpc.Operation[HostSearch, SearchResponse]
    add: nexusrpc.Operation[HostAdd, AddResponse]
    list: nexusrpc.Operation[HostList, ListResponse]
    feed: nexusrpc.Operation[HostFeed, FeedResponse]
    ingest: nexusrpc.Operation[IngestInput, IngestResult]
