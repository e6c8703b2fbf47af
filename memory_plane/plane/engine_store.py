"""Our own document store: the engine's services behind the port."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory_plane.contracts.enums import RetentionClass
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
from memory_plane.plane.adding import Adding, AddOutcome
from memory_plane.plane.document_store import DocumentStore
from memory_plane.plane.feed import Feed
from memory_plane.plane.library import Library
from memory_plane.plane.retention import Retention
from memory_plane.plane.search import Search


@dataclass(frozen=True)
class EngineStore(DocumentStore):
    adding: Adding
    searching: Search
    library: Library
    following: Feed
    retention: Retention

    async def add(
        self, visibility: Visibility, request: AddRequest, payload: Any, idempotency_key: str | None
    ) -> AddOutcome:
        return await self.adding.add(visibility, request, payload, idempotency_key)

    async def add_batch(
        self, visibility: Visibility, items: Sequence[Any], idempotency_key: str | None
    ) -> BatchResponse:
        return await self.adding.add_batch(visibility, items, idempotency_key)

    async def search(self, visibility: Visibility, request: SearchRequest) -> SearchResponse:
        return await self.searching.search(visibility, request)

    async def list(self, visibility: Visibility, limit: int, cursor: str | None) -> ListResponse:
        return await self.library.list(visibility, limit, cursor)

    async def get(self, visibility: Visibility, document_id: str, version: int | None = None) -> DocumentResponse:
        return await self.library.get(visibility, document_id, version)

    async def feed(
        self, visibility: Visibility, after: int, limit: int, exclude_generator: str | None = None
    ) -> FeedResponse:
        return await self.following.entries(visibility, after, limit, exclude_generator)

    async def events(self, visibility: Visibility, after: int, limit: int) -> FeedEventsResponse:
        return await self.following.events(visibility, after, limit)

    async def forget(self, visibility: Visibility, document_id: str, reason: str | None = None) -> ForgetResponse:
        return await self.retention.forget(visibility, document_id, reason)

    async def purge(self, visibility: Visibility, document_id: str) -> PurgeResponse:
        return await self.retention.purge(visibility, document_id)

    async def set_retention_class(
        self, visibility: Visibility, version_id: str, retention_class: RetentionClass
    ) -> RetentionClassResponse:
        return await self.retention.set_retention_class(visibility, version_id, retention_class)
