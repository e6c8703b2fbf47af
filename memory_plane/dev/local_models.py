"""The models of the local endpoint behind one fair queue: what the HTTP routes call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from memory_plane.dev import minilm, static_words
from memory_plane.dev.fair_threads import FairThreads
from memory_plane.dev.late_interaction import LateInteraction, raw_score
from memory_plane.dev.minilm import Floats, MiniLm, micro_batches
from memory_plane.dev.static_words import StaticWords

MODELS = {minilm.NAME: minilm.DIMS, static_words.NAME: static_words.DIMS}


class LocalModels:
    """MiniLM, loaded at once, and wordllama, loaded when first asked for."""

    def __init__(self, threads: int) -> None:
        self._minilm = MiniLm()
        self._reranker = LateInteraction(self._minilm)
        self._words: StaticWords | None = None
        self._threads = FairThreads(threads)

    async def embed(self, model: str, texts: Sequence[str]) -> list[Floats]:
        """A unit vector for each text. `model` is one of MODELS."""
        if model == static_words.NAME:
            if self._words is None:
                self._words = await asyncio.to_thread(StaticWords)
            (vectors,) = await self._threads.run([partial(_embed_all, self._words, texts)])
            return vectors
        tokens = await self._tokenize(texts)
        groups = micro_batches(list(map(len, tokens)))
        pieces = [partial(self._minilm.embed, [tokens[index] for index in group]) for group in groups]
        vectors = list(chain.from_iterable(await self._threads.run(pieces)))
        order = list(chain.from_iterable(groups))
        return [vector for _, vector in sorted(zip(order, vectors, strict=True), key=lambda pair: pair[0])]

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """The raw score of late interaction for each text."""
        pieces = await asyncio.to_thread(self._reranker.pieces, [*texts, query])
        states = dict(chain.from_iterable(await self._threads.run(pieces)))
        asked = states[len(texts)]
        return [raw_score(asked, states[index]) for index in range(len(texts))]

    def close(self) -> None:
        self._threads.close()

    async def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        work: Callable[[], list[list[int]]] = partial(_map_all, self._minilm.tokenize, texts)
        # A query is tokenized faster than handed to a thread.
        return work() if sum(map(len, texts)) < 2_000 else await asyncio.to_thread(work)


def _map_all(tokenize: Callable[[str], list[int]], texts: Sequence[str]) -> list[list[int]]:
    return [tokenize(text) for text in texts]


def _embed_all(words: StaticWords, texts: Sequence[str]) -> list[Floats]:
    return [words.embed(text) for text in texts]
