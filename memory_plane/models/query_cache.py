"""A small memory of query embeddings: people and agents ask the same thing again within minutes."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256

from memory_plane.models.endpoint import Endpoint
from memory_plane.models.isolate import Vector

_Key = tuple[str, str, bytes]


class QueryCache:
    """Least recently used out first, none older than `ttl` seconds. Keys hold a hash, never the query."""

    def __init__(
        self, max_entries: int = 2048, ttl: float = 600.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_entries = max_entries
        self._ttl = ttl
        self._clock = clock
        self._entries: OrderedDict[_Key, tuple[float, Vector]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, endpoint: Endpoint, text: str) -> Vector | None:
        key = _key(endpoint, text)
        entry = self._entries.get(key)
        if entry is None:
            return None
        expires, vector = entry
        if self._clock() >= expires:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return vector

    def put(self, endpoint: Endpoint, text: str, vector: Vector) -> None:
        """Remember `vector`, which is made read-only: everyone who asks gets the same array."""
        vector.flags.writeable = False
        key = _key(endpoint, text)
        self._entries[key] = (self._clock() + self._ttl, vector)
        self._entries.move_to_end(key)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)


def _key(endpoint: Endpoint, text: str) -> _Key:
    return endpoint.base_url, endpoint.model, sha256(text.encode("utf-8", "surrogatepass")).digest()
