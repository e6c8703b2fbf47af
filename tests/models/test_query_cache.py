"""The memory of query embeddings: bounded, of a limited age, one endpoint never answering for another."""

from __future__ import annotations

import numpy as np
import pytest

from memory_plane.models.endpoint import Endpoint
from memory_plane.models.isolate import Vector
from memory_plane.models.query_cache import QueryCache
from tests.models.conftest import Clock

HERE = Endpoint("http://here", "m", "openai")


def vector(value: float) -> Vector:
    return np.array([value], dtype=np.float32)


def test_it_answers_for_the_same_endpoint_model_and_text_only(clock: Clock) -> None:
    cache = QueryCache(clock=clock)
    cache.put(HERE, "q", vector(1))
    assert cache.get(HERE, "q") == vector(1)
    assert cache.get(Endpoint("http://here/v1/", "m", "openai"), "q") == vector(1)
    assert cache.get(HERE, "Q") is None
    assert cache.get(Endpoint("http://here", "n", "openai"), "q") is None
    assert cache.get(Endpoint("http://there", "m", "openai"), "q") is None


def test_what_was_used_longest_ago_goes_first(clock: Clock) -> None:
    cache = QueryCache(max_entries=2, clock=clock)
    cache.put(HERE, "a", vector(1))
    cache.put(HERE, "b", vector(2))
    cache.get(HERE, "a")
    cache.put(HERE, "c", vector(3))
    assert [cache.get(HERE, text) is not None for text in "abc"] == [True, False, True]
    assert len(cache) == 2


def test_nothing_is_older_than_its_time(clock: Clock) -> None:
    cache = QueryCache(ttl=10.0, clock=clock)
    cache.put(HERE, "a", vector(1))
    clock.now += 9.9
    assert cache.get(HERE, "a") is not None
    clock.now += 0.1
    assert cache.get(HERE, "a") is None
    assert len(cache) == 0


def test_what_is_shared_cannot_be_changed(clock: Clock) -> None:
    cache = QueryCache(clock=clock)
    cache.put(HERE, "lone \ud800", vector(1))
    got = cache.get(HERE, "lone \ud800")
    assert got is not None
    with pytest.raises(ValueError, match="read-only"):
        got[0] = 2
