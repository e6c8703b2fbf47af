"""What host workflows ask of the memory without HTTP: over our task queue, or over Nexus.

Unlike everything else that passes through Temporal these carry content, in the host's own histories. Who would rather
not captures first and passes ids, or encrypts payloads with a codec.
"""

from typing import Annotated

from pydantic import Field

from memory_plane.contracts.wire import AddRequest, SearchRequest
from memory_plane.contracts.workflows import Id, Identity, Payload

ACTIVITY_SEARCH = "memory_search"
ACTIVITY_ADD = "memory_add"
ACTIVITY_LIST = "memory_list"
ACTIVITY_FEED = "memory_feed"


class HostSearch(Payload):
    identity: Identity
    request: SearchRequest


class HostAdd(Payload):
    """Without a key the call itself is one: its retries capture nothing twice."""

    identity: Identity
    document: AddRequest
    idempotency_key: Annotated[str, Field(min_length=1, max_length=255)] | None = None


class HostList(Payload):
    identity: Identity
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: str | None = None


class HostFeed(Payload):
    """Versions captured after position `after`; without those that `exclude_generator` made."""

    identity: Identity
    after: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=100)] = 50
    exclude_generator: Id | None = None
