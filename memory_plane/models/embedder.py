"""What the plane embeds with: shared requests, remembered queries, and an endpoint left alone while it is down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memory_plane.models.batcher import Batcher, Lane
from memory_plane.models.breaker import Breaker
from memory_plane.models.embed import EmbedClient
from memory_plane.models.errors import EndpointRejected, EndpointTimeout
from memory_plane.models.isolate import Outcome, TextFault, Vector
from memory_plane.models.query_cache import QueryCache


class Embedder:
    """One embedding model as a whole process shares it.

    Two breakers, because there are two questions. `reachable` is about the endpoint: it guards every request.
    `in_time` is about callers with a deadline: an endpoint that works, but too slowly for a search, must not cost
    every search its share of the budget while bulk work goes on.
    """

    def __init__(
        self,
        client: EmbedClient,
        cache: QueryCache,
        *,
        reachable: Breaker | None = None,
        in_time: Breaker | None = None,
        max_in_flight: int = 4,
    ) -> None:
        self.client = client
        self.reachable = reachable or Breaker(client.endpoint.name)
        self.in_time = in_time or Breaker(client.endpoint.name)
        self._cache = cache
        self._batcher = Batcher(
            self._send,
            batch_size=client.batch_size,
            batch_chars=client.batch_chars,
            max_in_flight=max_in_flight,
        )

    async def embed_query(self, text: str, within: float) -> Vector:
        """The vector of a query, within so many seconds. Raises an EndpointFault."""
        known = self._cache.get(self.client.endpoint, text)
        if known is not None:
            return known
        (outcome,) = await self._in_time([text], within)
        if isinstance(outcome, TextFault):
            raise EndpointRejected(outcome.reason)
        self._cache.put(self.client.endpoint, text, outcome)
        return outcome

    async def embed_texts(self, texts: Sequence[str], *, within: float | None = None) -> list[Outcome]:
        """A vector or a TextFault for each text; raises an EndpointFault when the endpoint is at fault.

        With `within` (seconds) someone waits for the answer, and it goes before background work.
        """
        if within is not None:
            return await self._in_time(texts, within)
        return await self._submit(texts, "background")

    async def aclose(self) -> None:
        await self._batcher.aclose()

    async def _in_time(self, texts: Sequence[str], within: float) -> list[Outcome]:
        with self.in_time.guard():
            try:
                async with asyncio.timeout(within):
                    return await self._submit(texts, "foreground")
            except TimeoutError:
                raise EndpointTimeout(
                    f"The model endpoint at {self.client.endpoint.name} did not answer within {within:g} s."
                ) from None

    async def _submit(self, texts: Sequence[str], lane: Lane) -> list[Outcome]:
        return await self._batcher.submit(texts, lane)

    async def _send(self, texts: list[str]) -> list[Outcome]:
        with self.reachable.guard():
            return await self.client.embed_isolating(texts)
