"""Fusion: the properties that ranking relies on, whatever the scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.contracts.recipe import FusionRecipe
from memory_plane.core.fusion import COMPANY, DENSE_DEPTH, LEXICAL_DEPTH, decided, fuse, normalized, ranks

keys = st.text("abcdefghij", min_size=1, max_size=3)
scores = st.dictionaries(keys, st.floats(0.0, 100.0), max_size=30)
channel = st.none() | scores
recipes = st.builds(
    FusionRecipe,
    method=st.sampled_from(["adaptive", "convex", "rrf"]),
    lexical_weight=st.floats(0.0, 1.0),
    k=st.integers(1, 100),
)


@given(scores, st.integers(1, 40), st.none() | st.just(0.0))
def test_normalized_scores_keep_order_and_bounds(
    given_scores: dict[str, float], depth: int, floor: float | None
) -> None:
    result = normalized(given_scores, depth=depth, floor=floor)
    assert result.keys() == given_scores.keys()
    assert all(0.0 <= score <= 1.0 for score in result.values())
    for left in result:
        for right in result:
            if given_scores[left] < given_scores[right]:
                assert result[left] <= result[right]
    if given_scores:
        assert result[max(given_scores, key=given_scores.__getitem__)] == 1.0


def test_what_lies_beyond_the_depth_changes_nothing_within_it() -> None:
    deep = {f"d{place}": 100.0 - place for place in range(200)}
    shallow = {key: score for key, score in deep.items() if score > 50.0}
    assert len(shallow) == LEXICAL_DEPTH
    within = normalized(deep, depth=LEXICAL_DEPTH)
    assert {key: within[key] for key in shallow} == normalized(shallow, depth=LEXICAL_DEPTH)
    assert within["d150"] == 0.0


def test_a_short_list_ends_at_its_floor_and_not_at_its_worst() -> None:
    assert normalized({"a": 4.0, "b": 3.0}, depth=50, floor=0.0) == {"a": 1.0, "b": 0.75}
    assert normalized({"a": 4.0, "b": 3.0}, depth=50) == {"a": 1.0, "b": 0.0}


@given(recipes, channel, channel)
def test_fusion_is_deterministic_complete_and_monotone(
    recipe: FusionRecipe, lexical: dict[str, float] | None, dense: dict[str, float] | None
) -> None:
    fused = fuse(recipe, lexical, dense)
    assert fused.keys() == {*(lexical or {}), *(dense or {})}
    assert fused == fuse(recipe, dict(reversed((lexical or {}).items())) if lexical else lexical, dense)
    for left in fused:
        for right in fused:
            if all(
                (found or {}).get(left, -1.0) > (found or {}).get(right, -1.0) for found in (lexical, dense) if found
            ):
                assert fused[left] >= fused[right]


def test_a_channel_alone_has_the_whole_weight() -> None:
    assert fuse(FusionRecipe(lexical_weight=0.3), {"a": 2.0, "b": 1.0}, None) == {"a": 1.0, "b": 0.5}
    assert fuse(FusionRecipe(lexical_weight=0.3), None, {"a": 0.9, "b": 0.1}) == {"a": 1.0, "b": 0.0}


@given(scores, st.integers(1, 40), st.none() | st.just(100.0))
def test_what_a_list_decides_is_a_share(given_scores: dict[str, float], place: int, perfect: float | None) -> None:
    assert 0.0 <= decided(given_scores, place=place, perfect=perfect) <= 1.0


def test_a_list_decides_as_far_as_its_best_is_above_the_crowd() -> None:
    crowd = {f"d{place}": 0.4 for place in range(200)}
    assert decided({**crowd, "best": 0.7}, place=DENSE_DEPTH, perfect=1.0) == pytest.approx(0.5)
    assert decided({**crowd, "best": 0.8}, place=COMPANY) == pytest.approx(0.5)
    assert decided(crowd, place=DENSE_DEPTH, perfect=1.0) == 0.0
    assert decided({"only": 3.0}, place=COMPANY) == 1.0
    assert decided({}, place=COMPANY) == 0.0


def test_the_words_that_one_alone_has_beat_similarities_that_tell_nothing_apart() -> None:
    dense = {f"d{place}": 0.5 - place / 10_000 for place in range(200)}
    fused = fuse(FusionRecipe(), {"says": 9.0}, dense)
    assert fused["says"] > 0.9
    assert fused["d0"] < 0.1


def test_meaning_decides_where_all_have_the_same_words() -> None:
    lexical = {f"d{place}": 5.0 for place in range(60)}
    dense = {f"d{place}": place / 100 for place in range(60)}
    fused = fuse(FusionRecipe(), lexical, dense)
    assert max(fused, key=fused.__getitem__) == "d59"


def test_reciprocal_ranks_add_up() -> None:
    fused = fuse(FusionRecipe(method="rrf", k=60), {"a": 9.0, "b": 5.0}, {"b": 0.9})
    assert fused == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61})


def test_equal_scores_share_a_rank() -> None:
    assert ranks({"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.5}) == {"b": 1, "a": 2, "c": 2, "d": 4}


def test_depths_are_those_that_were_measured() -> None:
    assert (LEXICAL_DEPTH, DENSE_DEPTH, COMPANY) == (50, 100, 20)
