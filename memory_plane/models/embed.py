"""Texts to vectors, in the three wire styles, with every answer checked before it is believed.

A vector is a float32 numpy array of one dimension: it is what the pgvector codec turns into the binary wire form
with one copy, and a third of the memory of a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

from memory_plane.contracts.recipe import MAX_DIMS, MIN_DIMS
from memory_plane.models.endpoint import Endpoint, post_json
from memory_plane.models.errors import BadReply, ModelUnusable
from memory_plane.models.isolate import CONTROL_TEXT, Isolation, Outcome, TextFault, Vector

_PATHS = {"openai": "/v1/embeddings", "tei": "/embed", "ollama": "/api/embed"}


@dataclass(frozen=True)
class EmbedClient:
    """Embeds through one endpoint.

    `dims` is what a vector must have, where it is known. A request carries at most `batch_size` texts and
    `batch_chars` characters (one longer text goes alone).
    """

    http: httpx.AsyncClient
    endpoint: Endpoint
    dims: int | None = None
    batch_size: int = 32
    batch_chars: int = 200_000

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of `texts`, in order. Raises an EndpointFault if any text gets none."""
        vectors: list[Vector] = []
        for batch in self.batches(texts):
            outcomes = await self._request(batch)
            vectors.extend(_all_vectors(outcomes))
        return vectors

    async def embed_isolating(self, texts: Sequence[str]) -> list[Outcome]:
        """A vector or a TextFault for each of `texts`, in order: one poisoned text fails no neighbour.

        Raises an EndpointFault when the endpoint itself is at fault; then nothing is returned, so call it with
        what is to be kept or lost together.
        """
        outcomes: list[Outcome] = []
        for batch in self.batches(texts):
            outcomes.extend(await Isolation(self._request).run(batch))
        return outcomes

    def batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """`texts` cut into requests, in order."""
        batch: list[str] = []
        chars = 0
        for text in texts:
            if batch and (len(batch) >= self.batch_size or chars + len(text) > self.batch_chars):
                yield batch
                batch, chars = [], 0
            batch.append(text)
            chars += len(text)
        if batch:
            yield batch

    async def _request(self, batch: list[str]) -> list[Outcome]:
        style = self.endpoint.style
        reply = await post_json(self.http, self.endpoint, _PATHS[style], self._payload(batch))
        rows = _rows(reply, style, len(batch), self.endpoint.name)
        dims = self.dims if self.dims is not None else _length(rows[0])
        return [_checked(row, dims, self.endpoint) for row in rows]

    def _payload(self, batch: list[str]) -> dict[str, Any]:
        match self.endpoint.style:
            case "tei":
                return {"inputs": batch}
            case "ollama":
                return {"model": self.endpoint.model, "input": batch, "truncate": True}
            case _:
                return {"model": self.endpoint.model, "input": batch}


async def probe_dims(client: EmbedClient) -> int:
    """How many dimensions the model's vectors have. Raises ModelUnusable outside of 64 to 4000."""
    unchecked = EmbedClient(client.http, client.endpoint)
    dims = len((await unchecked.embed([CONTROL_TEXT]))[0])
    if not MIN_DIMS <= dims <= MAX_DIMS:
        raise ModelUnusable(
            f"The model {client.endpoint.model!r} makes vectors of {dims} dimensions; {MIN_DIMS} to {MAX_DIMS} "
            "can be indexed. Choose another model, or a smaller size of it."
        )
    return dims


def _all_vectors(outcomes: list[Outcome]) -> list[Vector]:
    vectors: list[Vector] = []
    for outcome in outcomes:
        if isinstance(outcome, TextFault):
            raise BadReply(outcome.reason, isolable=True)
        vectors.append(outcome)
    return vectors


def _rows(reply: Any, style: str, count: int, name: str) -> list[Any]:
    """One row of numbers for each text, in the order of the texts."""
    match style, reply:
        case "tei", list(rows):
            pass
        case "ollama", {"embeddings": list(rows)}:
            pass
        case "openai", {"data": list(items)}:
            rows = by_index(items, "embedding", count, name)
        case _:
            raise BadReply(f"The reply of {name} is not of the {style} style; check the API style.", isolable=True)
    if len(rows) != count:
        raise BadReply(f"{name} answered {len(rows)} vectors for {count} texts.", isolable=True)
    return rows


def by_index(items: list[Any], value: str, count: int, name: str) -> list[Any]:
    """The `value` of each item, put where its `index` says; every index of 0…count-1 exactly once."""
    placed: dict[int, Any] = {}
    for item in items:
        index = item.get("index") if isinstance(item, dict) else None
        if type(index) is not int or not 0 <= index < count or index in placed or value not in item:
            raise BadReply(
                f"{name} answered an item without its index, with a wrong one or with one twice.", isolable=True
            )
        placed[index] = item[value]
    if len(placed) != count:
        raise BadReply(f"{name} answered {len(placed)} items for {count} texts.", isolable=True)
    return [placed[index] for index in range(count)]


def _length(row: Any) -> int:
    return len(row) if isinstance(row, list) else 0


def _checked(row: Any, dims: int, endpoint: Endpoint) -> Outcome:
    # Looking at types first: numpy would make numbers of "0.5" and of true.
    if not isinstance(row, list) or not row or not set(map(type, row)) <= {float, int}:
        return _fault(endpoint, "that is not made of numbers")
    if len(row) != dims:
        return _fault(
            endpoint,
            f"of {len(row)} dimensions where model {endpoint.model!r} has {dims}; if another model is served under "
            "this name now, give it a name of its own",
        )
    try:
        with np.errstate(over="ignore"):
            vector = np.asarray(row, dtype=np.float64).astype(np.float32)
    except OverflowError:
        return _fault(endpoint, "with numbers beyond all range")
    if not np.isfinite(vector).all():
        return _fault(endpoint, "with NaN or infinity in it")
    if not vector.any():
        return _fault(endpoint, "of zeros, which has no direction")
    return vector


def _fault(endpoint: Endpoint, what: str) -> TextFault:
    return TextFault(BadReply.default_code, f"{endpoint.name} answered a vector {what}.")
