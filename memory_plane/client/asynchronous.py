"""The client for asyncio: the same methods, to be awaited."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx
from pydantic import BaseModel
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

from memory_plane.client import exchange
from memory_plane.client.calls import AddOptions, Call, Calls, Document, SearchOptions, new_key, split
from memory_plane.contracts.wire import (
    AddResponse,
    BatchItem,
    BatchResponse,
    DocumentResponse,
    FeedEventsResponse,
    FeedResponse,
    ForgetResponse,
    ListEvent,
    ListResponse,
    PurgeResponse,
    RetentionClassResponse,
    SearchResponse,
)

R = TypeVar("R", bound=BaseModel)


class AsyncMemoryClient:
    """`MemoryClient` for asyncio; see there for what each method does."""

    def __init__(
        self,
        api: str,
        tenant: str,
        token: str,
        *,
        timeout: float = exchange.DEFAULT_TIMEOUT,
        attempts: int = 4,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._calls = Calls(tenant)
        self._attempts = attempts
        self._http = httpx.AsyncClient(
            base_url=exchange.base_url(api),
            headers=exchange.headers(token),
            timeout=httpx.Timeout(timeout, connect=min(timeout, 5.0)),
            transport=transport,
        )

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """From MEMORY_API, MEMORY_TENANT and MEMORY_TOKEN; `options` as for the constructor."""
        return cls(*exchange.environment(), **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def add(
        self, title: str, text: str, *, idempotency_key: str | None = None, **options: Unpack[AddOptions]
    ) -> AddResponse:
        return await self._send(self._calls.add({"title": title, "text": text, **options}, idempotency_key))

    async def add_batch(
        self, items: Sequence[Document | Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> BatchResponse:
        return await self._send(self._calls.add_batch(items, idempotency_key))

    async def add_many(
        self,
        items: Iterable[Document | Mapping[str, Any]],
        *,
        batch_size: int = 100,
        idempotency_key: str | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> AsyncIterator[BatchItem]:
        key = idempotency_key or new_key()
        done = 0
        for batch in split(items, batch_size):
            response = await self.add_batch(batch, idempotency_key=f"{key}/{done}")
            for item in response.items:
                yield item.model_copy(update={"index": done + item.index})
            done += len(batch)
            if on_progress is not None:
                on_progress(done)

    async def search(self, query: str = "", **options: Unpack[SearchOptions]) -> SearchResponse:
        return await self._send(self._calls.search(query, options))

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> ListResponse:
        return await self._send(self._calls.list(limit, cursor))

    async def list_all(self, *, page_size: int = 100) -> AsyncIterator[ListEvent]:
        page = await self.list(limit=page_size)
        for event in page.events:
            yield event
        while page.next_cursor is not None:
            page = await self.list(limit=page_size, cursor=page.next_cursor)
            for event in page.events:
                yield event

    async def feed(
        self, *, after: int = 0, limit: int | None = None, exclude_generator: str | None = None
    ) -> FeedResponse:
        return await self._send(self._calls.feed(after, limit, exclude_generator))

    async def feed_events(self, *, after: int = 0, limit: int | None = None) -> FeedEventsResponse:
        return await self._send(self._calls.events(after, limit))

    async def feed_pages(
        self,
        *,
        after: int = 0,
        limit: int = 100,
        exclude_generator: str | None = None,
        poll: float | None = None,
    ) -> AsyncIterator[FeedResponse]:
        while True:
            page = await self.feed(after=after, limit=limit, exclude_generator=exclude_generator)
            if page.next_cursor == after:
                if poll is None:
                    return
                await asyncio.sleep(poll)
                continue
            after = page.next_cursor
            yield page

    async def feed_event_pages(
        self, *, after: int = 0, limit: int = 100, poll: float | None = None
    ) -> AsyncIterator[FeedEventsResponse]:
        while True:
            page = await self.feed_events(after=after, limit=limit)
            if page.next_cursor == after:
                if poll is None:
                    return
                await asyncio.sleep(poll)
                continue
            after = page.next_cursor
            yield page

    async def get(self, document_id: str, *, version: int | str | None = None) -> DocumentResponse:
        return await self._send(self._calls.get(document_id, version))

    async def forget(self, document_id: str, *, reason: str | None = None) -> ForgetResponse:
        return await self._send(self._calls.forget(document_id, reason))

    async def purge(self, document_id: str) -> PurgeResponse:
        return await self._send(self._calls.purge(document_id))

    async def set_retention_class(self, version_id: str, retention_class: str) -> RetentionClassResponse:
        return await self._send(self._calls.set_retention_class(version_id, retention_class))

    async def _send(self, call: Call[R]) -> R:
        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda error: exchange.may_repeat(call, error)),
            stop=stop_after_attempt(self._attempts),
            wait=exchange.pause,
            reraise=True,
        )
        return await retrying(self._send_once, call)

    async def _send_once(self, call: Call[R]) -> R:
        try:
            response = await self._http.request(
                call.method, call.path, params=call.params, content=call.content, headers=call.headers
            )
        except httpx.TransportError as error:
            raise exchange.unanswered(error) from error
        return exchange.decode(call, response)
