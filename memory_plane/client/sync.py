"""The blocking client."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx
from pydantic import BaseModel
from tenacity import Retrying, retry_if_exception, stop_after_attempt

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


class MemoryClient:
    """The facade as seen by one caller of one tenant. Thread-safe; close it or use it as a context manager.

    `timeout` is in seconds for one answer, `attempts` how often a request is sent at most. Every method raises
    the typed errors of `memory_plane.contracts.errors`.
    """

    def __init__(
        self,
        api: str,
        tenant: str,
        token: str,
        *,
        timeout: float = exchange.DEFAULT_TIMEOUT,
        attempts: int = 4,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._calls = Calls(tenant)
        self._attempts = attempts
        self._http = httpx.Client(
            base_url=exchange.base_url(api),
            headers=exchange.headers(token),
            timeout=httpx.Timeout(timeout, connect=min(timeout, 5.0)),
            transport=transport,
        )

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """From MEMORY_API, MEMORY_TENANT and MEMORY_TOKEN; `options` as for the constructor."""
        return cls(*exchange.environment(), **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def add(
        self, title: str, text: str, *, idempotency_key: str | None = None, **options: Unpack[AddOptions]
    ) -> AddResponse:
        """Capture one document. Without `idempotency_key` each call makes one of its own, for its retries."""
        return self._send(self._calls.add({"title": title, "text": text, **options}, idempotency_key))

    def add_batch(
        self, items: Sequence[Document | Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> BatchResponse:
        """Capture up to 500 documents in one request; each item succeeds or fails alone."""
        return self._send(self._calls.add_batch(items, idempotency_key))

    def add_many(
        self,
        items: Iterable[Document | Mapping[str, Any]],
        *,
        batch_size: int = 100,
        idempotency_key: str | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> Iterator[BatchItem]:
        """Capture any number of documents, batch by batch; outcomes come in order, `index` counting from the
        first item. `on_progress` is told after each batch how many items are through."""
        key = idempotency_key or new_key()
        done = 0
        for batch in split(items, batch_size):
            response = self.add_batch(batch, idempotency_key=f"{key}/{done}")
            for item in response.items:
                yield item.model_copy(update={"index": done + item.index})
            done += len(batch)
            if on_progress is not None:
                on_progress(done)

    def search(self, query: str = "", **options: Unpack[SearchOptions]) -> SearchResponse:
        return self._send(self._calls.search(query, options))

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> ListResponse:
        """One page of recent documents, newest first."""
        return self._send(self._calls.list(limit, cursor))

    def list_all(self, *, page_size: int = 100) -> Iterator[ListEvent]:
        """Every document the caller may see, newest first."""
        page = self.list(limit=page_size)
        yield from page.events
        while page.next_cursor is not None:
            page = self.list(limit=page_size, cursor=page.next_cursor)
            yield from page.events

    def feed(self, *, after: int = 0, limit: int | None = None, exclude_generator: str | None = None) -> FeedResponse:
        """One page of new versions with positions above `after`."""
        return self._send(self._calls.feed(after, limit, exclude_generator))

    def feed_events(self, *, after: int = 0, limit: int | None = None) -> FeedEventsResponse:
        """One page of every kind of change, for mirrors."""
        return self._send(self._calls.events(after, limit))

    def feed_pages(
        self,
        *,
        after: int = 0,
        limit: int = 100,
        exclude_generator: str | None = None,
        poll: float | None = None,
    ) -> Iterator[FeedResponse]:
        """The feed page by page; store `next_cursor` once a page is dealt with, and start from there next time.

        Ends with the feed, or with `poll` waits that many seconds at its end and goes on for ever. Pages whose
        entries are all denied or excluded are handed out too, as their cursor is worth storing.
        """
        while True:
            page = self.feed(after=after, limit=limit, exclude_generator=exclude_generator)
            if page.next_cursor == after:
                if poll is None:
                    return
                time.sleep(poll)
                continue
            after = page.next_cursor
            yield page

    def feed_event_pages(
        self, *, after: int = 0, limit: int = 100, poll: float | None = None
    ) -> Iterator[FeedEventsResponse]:
        """As `feed_pages`, of every kind of change."""
        while True:
            page = self.feed_events(after=after, limit=limit)
            if page.next_cursor == after:
                if poll is None:
                    return
                time.sleep(poll)
                continue
            after = page.next_cursor
            yield page

    def get(self, document_id: str, *, version: int | str | None = None) -> DocumentResponse:
        """A document with the text of its active version, or of the given one."""
        return self._send(self._calls.get(document_id, version))

    def forget(self, document_id: str, *, reason: str | None = None) -> ForgetResponse:
        """Erase the content of a document of one's own, and of what was derived from it; ids and times remain."""
        return self._send(self._calls.forget(document_id, reason))

    def purge(self, document_id: str) -> PurgeResponse:
        """Delete a document of one's own with everything under it."""
        return self._send(self._calls.purge(document_id))

    def set_retention_class(self, version_id: str, retention_class: str) -> RetentionClassResponse:
        return self._send(self._calls.set_retention_class(version_id, retention_class))

    def _send(self, call: Call[R]) -> R:
        retrying = Retrying(
            retry=retry_if_exception(lambda error: exchange.may_repeat(call, error)),
            stop=stop_after_attempt(self._attempts),
            wait=exchange.pause,
            reraise=True,
        )
        answer: R = retrying(self._send_once, call)
        return answer

    def _send_once(self, call: Call[R]) -> R:
        try:
            response = self._http.request(
                call.method, call.path, params=call.params, content=call.content, headers=call.headers
            )
        except httpx.TransportError as error:
            raise exchange.unanswered(error) from error
        return exchange.decode(call, response)
