"""The port behind the facade's verbs: a host may mount a store of its own in the place of ours.

A store must add, search, list and get. Every other verb is optional: what a store does not override is refused as
`unsupported` (501 over HTTP), and is missing from its `capabilities`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memory_plane.contracts.enums import RetentionClass
from memory_plane.contracts.errors import Unsupported
from memory_plane.contracts.wire import (
    AddRequest,
    BatchResponse,
    DocumentResponse,
    FeedEventsResponse,
    FeedResponse,
    ForgetResponse,
    ListResponse,
    PurgeResponse,
    RetentionClassResponse,
    SearchRequest,
    SearchResponse,
)
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import Access
from memory_plane.plane.adding import AddOutcome


class DocumentStore(ABC):
    """What a caller may do has been checked by the door; what he may see is the store's to keep, by `visibility`."""

    OPTIONAL = frozenset({"add_batch", "feed", "events", "forget", "purge", "set_retention_class"})

    @property
    def capabilities(self) -> frozenset[str]:
        """The optional verbs that this store has."""
        return frozenset(
            verb for verb in self.OPTIONAL if getattr(type(self), verb) is not getattr(DocumentStore, verb)
        )

    @abstractmethod
    async def add(
        self, visibility: Visibility, request: AddRequest, payload: Any, idempotency_key: str | None
    ) -> AddOutcome:
        """Durable once answered. `payload` is the JSON as it was sent."""

    @abstractmethod
    async def search(self, visibility: Visibility, request: SearchRequest) -> SearchResponse:
        """Best first, only what the caller sees."""

    @abstractmethod
    async def list(self, visibility: Visibility, limit: int, cursor: str | None) -> ListResponse:
        """Last seen first. Raises Invalid for a cursor that is not one of its own."""

    @abstractmethod
    async def get(self, visibility: Visibility, document_id: str, version: int | None = None) -> DocumentResponse:
        """Raises NotFound for what the caller does not see, as for what is not there."""

    async def add_batch(
        self, visibility: Visibility, items: Sequence[Any], idempotency_key: str | None
    ) -> BatchResponse:
        raise _unsupported("adding in batches")

    async def feed(
        self, visibility: Visibility, after: int, limit: int, exclude_generator: str | None = None
    ) -> FeedResponse:
        raise _unsupported("the feed")

    async def events(self, visibility: Visibility, after: int, limit: int) -> FeedEventsResponse:
        raise _unsupported("the feed of changes")

    async def forget(self, visibility: Visibility, document_id: str, reason: str | None = None) -> ForgetResponse:
        raise _unsupported("forgetting")

    async def purge(self, visibility: Visibility, document_id: str) -> PurgeResponse:
        raise _unsupported("purging")

    async def set_retention_class(
        self, visibility: Visibility, version_id: str, retention_class: RetentionClass
    ) -> RetentionClassResponse:
        raise _unsupported("retention classes")


class Mountable(Protocol):
    """What the facade's routes stand on: an `Engine`, or a `Mounted` store of the host's."""

    @property
    def access(self) -> Access: ...

    @property
    def documents(self) -> DocumentStore: ...


@dataclass(frozen=True, slots=True)
class Mounted:
    """A host's store and who may do what in it, for `register_memory_routes`."""

    access: Access
    documents: DocumentStore


def _unsupported(what: str) -> Unsupported:
    return Unsupported(f"The mounted store does not offer {what}; ask without it.")
