"""Every model endpoint that a process talks to: one HTTP client, one embedder or reranker for each."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx

from memory_plane.models.chat import ChatClient
from memory_plane.models.embed import EmbedClient, probe_dims
from memory_plane.models.embedder import Embedder
from memory_plane.models.endpoint import Endpoint, http_client
from memory_plane.models.query_cache import QueryCache
from memory_plane.models.rerank import RerankClient, Reranker


class ModelPool:
    """Hands out shared clients, so that everyone's requests are batched and everyone knows what is down.

    `http` is used as it is and left open by `aclose`; without it the pool makes its own.
    """

    def __init__(
        self, http: httpx.AsyncClient | None = None, *, embed_batch_size: int = 32, cache: QueryCache | None = None
    ) -> None:
        self._own_http = http is None
        self._http = http if http is not None else http_client()
        self._embed_batch_size = embed_batch_size
        self._cache = cache if cache is not None else QueryCache()
        self._embedders: dict[tuple[Endpoint, int | None], Embedder] = {}
        self._rerankers: dict[tuple[Endpoint, int | None], Reranker] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def embedder(self, endpoint: Endpoint, dims: int | None = None) -> Embedder:
        """The embedder of this endpoint whose vectors must have `dims`."""
        key = (endpoint, dims)
        if key not in self._embedders:
            client = EmbedClient(self._http, endpoint, dims, batch_size=self._embed_batch_size)
            self._embedders[key] = Embedder(client, self._cache)
        return self._embedders[key]

    async def dims_of(self, endpoint: Endpoint) -> int:
        """The size of its vectors, asked of it. Raises EndpointFault, or ModelUnusable outside of 64 to 4000."""
        return await probe_dims(EmbedClient(self._http, endpoint))

    def reranker(self, endpoint: Endpoint, max_doc_chars: int | None = None) -> Reranker:
        key = (endpoint, max_doc_chars)
        if key not in self._rerankers:
            self._rerankers[key] = Reranker(RerankClient(self._http, endpoint, max_doc_chars))
        return self._rerankers[key]

    def chat(self, endpoint: Endpoint, temperature: float | None = None) -> ChatClient:
        return ChatClient(self._http, endpoint, temperature)

    async def aclose(self) -> None:
        for embedder in self._embedders.values():
            await embedder.aclose()
        if self._own_http:
            await self._http.aclose()
