"""Surroundings: who lends to whom, and that nothing else moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.core.surroundings import (
    BELOW,
    FALLOFF,
    MUCH,
    ORDINARY,
    PASSAGE_SHARE,
    REACH,
    StreamPlace,
    held,
    lifted,
    supported,
)


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
    st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, REACH), st.booleans()), min_size=1, max_size=40),
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
    ordinary = sorted(scores.values(), reverse=True)[min(ORDINARY, len(scores) - 1)]
    expected = {
        key: score
        + sum(
            weight * FALLOFF[distance - 1] * max(0.0, scores[other] - ordinary)
            for other in scores
            if positions[other][0] == positions[key][0]
            and 1 <= (distance := abs(positions[other][1] - positions[key][1])) <= REACH
        )
        for key, score in scores.items()
    }
    assert lifted(scores, places, weight) == pytest.approx(expected)


@given(st.floats(0.0, 1.0), st.integers(2, 40), st.floats(0.0, 1.0))
def test_a_crowd_of_equals_lifts_nobody(score: float, count: int, weight: float) -> None:
    scores = {str(number): score for number in range(count)}
    places = [StreamPlace(str(number), 1, 0 if number else REACH) for number in range(count)]
    assert lifted(scores, places, weight) == scores


SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.0, 1.0), min_size=1)


@given(SCORES, st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.0, 1.0)), st.floats(1.0, 3.0))
def test_held_takes_from_lifts_alone_and_only_from_those_that_say_little(
    own: dict[str, float], said: dict[str, float], factor: float
) -> None:
    lifted_to = {key: score * factor for key, score in own.items()}
    result = held(lifted_to, own, said)
    assert result.keys() == lifted_to.keys()
    most = max(said.get(key, 0.0) for key in own)
    best = max(lifted_to[key] for key in own if said.get(key, 0.0) >= most)
    for key, score in result.items():
        assert own[key] <= score <= lifted_to[key]
        if most < MUCH or 2.0 * said.get(key, 0.0) >= most:
            assert score == lifted_to[key]
        else:
            assert score <= max(own[key], BELOW * best)


def test_who_says_it_all_stays_ahead_of_good_company() -> None:
    assert held({"says": 0.6, "near": 0.9}, {"says": 0.6, "near": 0.4}, {"says": 1.0}) == {
        "says": 0.6,
        "near": pytest.approx(0.6 * BELOW),
    }


def test_nobody_is_held_where_nobody_says_much() -> None:
    lifted_to = {"says": 0.6, "near": 0.9}
    assert held(lifted_to, {"says": 0.6, "near": 0.4}, {"says": 0.4}) == lifted_to


def test_adjoining_passages_support_each_other_whatever_their_order() -> None:
    middle, apart, first = (90, 200, 0.5), (400, 500, 0.6), (0, 100, 1.0)
    assert supported([middle, apart, first]) == pytest.approx(
        [0.5 + PASSAGE_SHARE * 1.0, 0.6, 1.0 + PASSAGE_SHARE * 0.5]
    )
    assert supported([]) == []
