"""Surroundings: who lends to whom, and that nothing else moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.core.surroundings import FALLOFF, REACH, StreamPlace, lifted


def test_a_neighbour_lends_a_share_by_its_distance() -> None:
    places = [StreamPlace("a", 1, REACH), StreamPlace("b", 1, 0), StreamPlace("c", 1, 1)]
    result = lifted({"a": 1.0, "b": 0.0, "c": 0.0}, places, 0.3)
    assert result["b"] == pytest.approx(0.3 * FALLOFF[0])
    assert result["c"] == pytest.approx(0.3 * FALLOFF[2])
    assert result["a"] == 1.0


def test_another_stream_and_a_wide_gap_lend_nothing() -> None:
    scores = {"a": 1.0, "b": 0.5, "c": 0.25}
    places = [StreamPlace("a", 1, REACH), StreamPlace("b", 1, REACH), StreamPlace("c", 2, REACH)]
    assert lifted(scores, places, 0.5) == scores


def test_no_weight_is_no_change() -> None:
    scores = {"a": 1.0, "b": 0.5}
    assert lifted(scores, [StreamPlace("a", 1, REACH), StreamPlace("b", 1, 0)], 0.0) == scores


@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, REACH), st.booleans()), min_size=1, max_size=12),
    st.floats(0.0, 1.0),
)
def test_it_equals_the_sum_over_all_pairs(rows: list[tuple[float, int, bool]], weight: float) -> None:
    """Against the definition: positions are spelt out, and every pair within reach is looked at."""
    scores, places, positions, stream = {}, [], {}, 0
    at = 0
    for place, (score, gap, new_stream) in enumerate(rows):
        key = str(place)
        stream += new_stream and place > 0
        at = 1000 * stream if place == 0 or new_stream else at + gap + 1
        scores[key] = score
        positions[key] = (stream, at)
        places.append(StreamPlace(key, stream, gap))
    expected = {
        key: score
        + sum(
            weight * FALLOFF[distance - 1] * scores[other]
            for other in scores
            if positions[other][0] == positions[key][0]
            and 1 <= (distance := abs(positions[other][1] - positions[key][1])) <= REACH
        )
        for key, score in scores.items()
    }
    assert lifted(scores, places, weight) == pytest.approx(expected)
