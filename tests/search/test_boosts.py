"""Boosts: bounded, and exact at the boundaries (invariant 15)."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.contracts.enums import TemporalClass
from memory_plane.contracts.recipe import Recipe
from memory_plane.core.boosts import (
    HIGHEST,
    LOOKAHEAD,
    LOWEST,
    BoostFacts,
    authority_boost,
    boosts,
    corroboration_boost,
    normalized_in_batch,
    temporal_boost,
)
from memory_plane.core.ranking import boosted, followed_by

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def facts(kind: TemporalClass, occurred_at: datetime = NOW, until: datetime | None = None) -> BoostFacts:
    return BoostFacts(0.5, kind, occurred_at, until)


moments = st.datetimes(datetime(2000, 1, 1), datetime(2050, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
any_facts = st.builds(
    BoostFacts,
    authority=st.floats(0.0, 1.0),
    temporal_class=st.sampled_from(TemporalClass),
    occurred_at=moments,
    valid_until=st.none() | moments,
    supports=st.integers(0, 1000),
    contradicts=st.integers(0, 1000),
)


@given(any_facts, moments, st.floats(0.0, 1.0), st.floats(0.01, 1000.0))
def test_every_multiplier_and_their_product_stay_in_bounds(
    given_facts: BoostFacts, now: datetime, weight: float, half_life: float
) -> None:
    made = boosts(given_facts, now, authority_weight=weight, half_life_days=half_life)
    for value in (made.authority, made.temporal, made.corroboration, made.product):
        assert LOWEST <= value <= HIGHEST


def test_authority_is_neutral_at_half_and_without_weight() -> None:
    assert authority_boost(0.5, 0.5) == 1.0
    assert authority_boost(0.9, 0.0) == 1.0
    assert authority_boost(1.0, 0.5) == pytest.approx(1.3)
    assert authority_boost(0.2, 0.5) == pytest.approx(0.7 + 0.6 * 0.2)


def test_inv_15_an_event_halves_at_its_half_life_and_the_future_is_now() -> None:
    assert temporal_boost(facts(TemporalClass.EVENT), NOW, 30.0) == pytest.approx(1.3)
    assert temporal_boost(facts(TemporalClass.EVENT, NOW - timedelta(days=30)), NOW, 30.0) == pytest.approx(1.0)
    assert temporal_boost(facts(TemporalClass.EVENT, NOW - timedelta(days=7)), NOW, 7.0) == pytest.approx(1.0)
    assert temporal_boost(facts(TemporalClass.EVENT, NOW + timedelta(days=9)), NOW, 30.0) == pytest.approx(1.3)
    assert temporal_boost(facts(TemporalClass.EVENT, NOW - timedelta(days=36500)), NOW, 30.0) == pytest.approx(0.7)


@pytest.mark.parametrize("kind", [TemporalClass.STATE, TemporalClass.LESSON])
def test_inv_15_state_and_lesson_do_not_age(kind: TemporalClass) -> None:
    assert temporal_boost(facts(kind, NOW - timedelta(days=5000)), NOW, 30.0) == 1.0


def test_inv_15_a_deadline_rises_from_the_lookahead_edge_to_its_end_and_falls_in_the_next_second() -> None:
    def at(until: datetime | None) -> float:
        return temporal_boost(facts(TemporalClass.DEADLINE, NOW - timedelta(days=400), until), NOW, 30.0)

    assert at(None) == 1.0
    assert at(NOW + LOOKAHEAD + SECOND) == 1.0
    assert at(NOW + LOOKAHEAD) == 1.0
    assert 1.0 < at(NOW + LOOKAHEAD - SECOND) < 1.001
    assert at(NOW + LOOKAHEAD / 2) == pytest.approx(1.15)
    assert at(NOW) == pytest.approx(1.3)
    assert at(NOW - SECOND) == 0.7


def test_corroboration_saturates_and_contradiction_weighs_against_it() -> None:
    assert corroboration_boost(0, 0) == 1.0
    assert corroboration_boost(4, 0) == pytest.approx(1.3)
    assert corroboration_boost(400, 0) == pytest.approx(1.3)
    assert corroboration_boost(0, 4) == pytest.approx(0.7)
    assert corroboration_boost(3, 3) == pytest.approx(1.0)
    assert 1.0 < corroboration_boost(1, 0) < corroboration_boost(2, 0) < 1.3


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.floats(-5.0, 5.0), max_size=10))
def test_a_batch_is_on_the_unit_interval(scores: dict[str, float]) -> None:
    result = normalized_in_batch(scores)
    assert all(0.0 <= score <= 1.0 for score in result.values())
    if len(set(scores.values())) == 1:
        assert set(result.values()) == {1.0}


def test_a_boost_alone_lifts_no_weak_match_over_a_strong_one() -> None:
    weak = BoostFacts(1.0, TemporalClass.EVENT, NOW, None, supports=50)
    strong = BoostFacts(0.0, TemporalClass.EVENT, NOW - timedelta(days=4000), None, contradicts=50)
    ranked = boosted(
        {"strong": 1.0, "weak": 0.5, "floor": 0.0},
        {"strong": strong, "weak": weak, "floor": weak}.__getitem__,
        Recipe(),
        NOW,
    )
    assert [item.document_id for item in ranked] == ["strong", "weak", "floor"]


def test_ties_go_to_the_latest_and_then_by_id() -> None:
    same = BoostFacts(0.5, TemporalClass.STATE, NOW, None)
    older = BoostFacts(0.5, TemporalClass.STATE, NOW - SECOND, None)
    ranked = boosted({"c": 1.0, "b": 1.0, "a": 1.0}, {"c": same, "b": same, "a": older}.__getitem__, Recipe(), NOW)
    assert [item.document_id for item in ranked] == ["b", "c", "a"]


def test_what_was_not_reranked_follows_below_what_was() -> None:
    same = BoostFacts(0.5, TemporalClass.STATE, NOW, None)
    known = dict.fromkeys("abcd", same).__getitem__
    head = boosted({"a": 0.9, "b": 0.2}, known, Recipe(), NOW)
    tail = boosted({"c": 0.7, "d": 0.1}, known, Recipe(), NOW)
    joined = followed_by(head, tail)
    assert [item.document_id for item in joined] == ["a", "b", "c", "d"]
    assert all(left.score >= right.score for left, right in pairwise(joined))


@given(
    st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.tuples(st.floats(0.0, 1.0), any_facts), max_size=20)
)
def test_what_no_boost_can_lift_is_left_out_and_changes_nothing(found: dict[str, tuple[float, BoostFacts]]) -> None:
    active = {key: score for key, (score, _) in found.items()}
    facts = {key: known for key, (_, known) in found.items()}.__getitem__
    whole = boosted(active, facts, Recipe(), NOW)
    for first in (1, 3, 10):
        assert boosted(active, facts, Recipe(), NOW, first=first)[:first] == whole[:first]
