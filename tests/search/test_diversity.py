"""Diversity: reorders, drops nothing, and off is off."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.core.diversity import Vector, diversified


def vector(*values: float) -> Vector:
    return np.array(values, dtype=np.float32)


ranked_lists = st.lists(st.text("abcdefgh", min_size=1, max_size=2), unique=True, max_size=12)


@given(ranked_lists, st.floats(0.0, 1.0), st.randoms(use_true_random=False))
def test_it_reorders_and_drops_nothing(ranked: list[str], strength: float, random: Random) -> None:
    relevance = {key: random.random() for key in ranked}
    vectors = {key: vector(random.random(), random.random()) for key in ranked if random.random() < 0.7}
    result = diversified(ranked, relevance, vectors, strength)
    assert sorted(result) == sorted(ranked)
    for place, key in enumerate(ranked):
        if key not in vectors:
            assert result[place] == key


def test_off_leaves_the_order_alone() -> None:
    vectors = {"a": vector(1, 0), "b": vector(1, 0), "c": vector(0, 1)}
    assert diversified(["a", "b", "c"], {"a": 1.0, "b": 0.9, "c": 0.8}, vectors, 1.0) == ["a", "b", "c"]


def test_a_duplicate_makes_room() -> None:
    vectors = {"a": vector(1, 0), "b": vector(2, 0), "c": vector(0, 1)}
    assert diversified(["a", "b", "c"], {"a": 1.0, "b": 0.9, "c": 0.8}, vectors, 0.5) == ["a", "c", "b"]


def test_relevance_is_what_is_given_and_not_similarity() -> None:
    """A lexical hit with an odd vector stays first: its relevance is the fused score."""
    vectors = {"a": vector(0, 1), "b": vector(1, 0), "c": vector(1, 0.1)}
    assert diversified(["a", "b", "c"], {"a": 1.0, "b": 0.2, "c": 0.1}, vectors, 0.9)[0] == "a"


def test_a_zero_vector_does_no_harm() -> None:
    vectors = {"a": vector(0, 0), "b": vector(1, 0)}
    assert sorted(diversified(["a", "b"], {"a": 1.0, "b": 0.9}, vectors, 0.5)) == ["a", "b"]
