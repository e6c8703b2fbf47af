"""Scores of documents for a query, in the three wire styles.

Scale: every score is in [0, 1] and means the same whatever else is in the batch, so that the evidence gate
(>= 0.6) can be applied to it.
- tei: the sigmoid of the cross-encoder's logit, as TEI answers unless asked for raw scores (we ask it not to).
  For the bge rerankers 0.5 is the trained border between irrelevant and relevant.
- cohere, voyage: `relevance_score`, which both document as a relevance in [0, 1].
- Servers that speak one of these styles and answer raw logits (some numbers beyond [0, 1]) get the sigmoid here.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import httpx

from memory_plane.models.breaker import Breaker
from memory_plane.models.embed import by_index
from memory_plane.models.endpoint import Endpoint, post_json
from memory_plane.models.errors import BadReply, EndpointTimeout, RerankQueryTooLong

# Tokens for query and document together. Unknown models get the least that any known one has.
TOKEN_LIMITS = {"bge-reranker-base": 512, "bge-reranker-large": 512, "bge-reranker-v2-m3": 8192}
UNKNOWN_TOKEN_LIMIT = 512
MARGIN_TOKENS = 12
CHARS_PER_TOKEN = 3
MIN_DOC_CHARS = 200

_PATHS = {"tei": "/rerank", "cohere": "/v2/rerank", "voyage": "/v1/rerank"}
# TEI refuses a request of more texts than its --max-client-batch-size, 32 unless set; scores are independent of
# each other, so splitting changes none.
_MAX_TEXTS = {"tei": 32, "cohere": 1000, "voyage": 1000}


def doc_budget(model: str, query: str, override: int | None = None) -> int:
    """How many characters of a document fit beside `query` within the model's limit.

    `override` (RERANK_MAX_DOC_CHARS) is the operator's word and is taken as it stands. Raises RerankQueryTooLong
    when less than 200 characters are left.
    """
    if override is not None:
        return override
    limit = TOKEN_LIMITS.get(model.rsplit("/", 1)[-1].lower(), UNKNOWN_TOKEN_LIMIT)
    left = (limit - MARGIN_TOKENS) * CHARS_PER_TOKEN - len(query)
    if left < MIN_DOC_CHARS:
        raise RerankQueryTooLong(
            f"The query of {len(query)} characters leaves {max(left, 0)} for a document within the {limit} tokens of "
            f"the reranker {model!r}; ask a shorter question, or set RERANK_MAX_DOC_CHARS."
        )
    return left


@dataclass(frozen=True)
class RerankClient:
    """Reranks through one endpoint."""

    http: httpx.AsyncClient
    endpoint: Endpoint
    max_doc_chars: int | None = None

    async def rerank(self, query: str, documents: Sequence[str]) -> list[float]:
        """A score in [0, 1] for each document, in the order given.

        Raises RerankQueryTooLong, or an EndpointFault when any document gets no score.
        """
        if not documents:
            return []
        budget = doc_budget(self.endpoint.model, query, self.max_doc_chars)
        cut = [document[:budget] for document in documents]
        step = _MAX_TEXTS[self.endpoint.style]
        parts = [cut[start : start + step] for start in range(0, len(cut), step)]
        tasks = [asyncio.create_task(self._request(query, part)) for part in parts]
        try:
            scores = await asyncio.gather(*tasks)
        finally:
            # After one failure the others' answers are worth nothing.
            for task in tasks:
                task.cancel()
        return calibrated(list(chain.from_iterable(scores)))

    async def _request(self, query: str, documents: list[str]) -> list[float]:
        style, name = self.endpoint.style, self.endpoint.name
        reply = await post_json(self.http, self.endpoint, _PATHS[style], self._payload(query, documents))
        match style, reply:
            case "tei", list(items):
                rows = by_index(items, "score", len(documents), name)
            case "cohere", {"results": list(items)}:
                rows = by_index(items, "relevance_score", len(documents), name)
            case "voyage", {"data": list(items)}:
                rows = by_index(items, "relevance_score", len(documents), name)
            case _:
                raise BadReply(f"The reply of {name} is not of the {style} style; check the API style.")
        return [_number(row, name) for row in rows]

    def _payload(self, query: str, documents: list[str]) -> dict[str, Any]:
        match self.endpoint.style:
            case "tei":
                return {"query": query, "texts": documents, "raw_scores": False, "truncate": True}
            case "cohere":
                return {"model": self.endpoint.model, "query": query, "documents": documents}
            case _:
                return {
                    "model": self.endpoint.model,
                    "query": query,
                    "documents": documents,
                    "truncation": True,
                }


class Reranker:
    """One reranker as a whole process shares it: a dead or slow one is left alone for a while."""

    def __init__(self, client: RerankClient, *, breaker: Breaker | None = None) -> None:
        self.client = client
        self.breaker = breaker or Breaker(client.endpoint.name)

    async def rerank(self, query: str, documents: Sequence[str], within: float) -> list[float]:
        """As RerankClient.rerank, within so many seconds."""
        with self.breaker.guard():
            try:
                async with asyncio.timeout(within):
                    return await self.client.rerank(query, documents)
            except TimeoutError:
                raise EndpointTimeout(
                    f"The reranker at {self.client.endpoint.name} did not answer within {within:g} s."
                ) from None


def calibrated(scores: list[float]) -> list[float]:
    """`scores` on the scale of this module: clamped when they are meant for [0, 1], else taken as logits."""
    tolerance = 1e-3
    if all(-tolerance <= score <= 1 + tolerance for score in scores):
        return [min(max(score, 0.0), 1.0) for score in scores]
    return [0.5 * (1.0 + math.tanh(0.5 * score)) for score in scores]


def _number(value: Any, name: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise BadReply(f"{name} answered a score that is not a finite number.")
    return float(value)
