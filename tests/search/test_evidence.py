"""Evidence: `strong` only through its gate (invariant 14)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.contracts.enums import CreatedByKind, Evidence, Provenance
from memory_plane.core.evidence import AUTHORITY_FLOOR, LEXICAL_FLOOR, RERANK_FLOOR, TopHit, evidence

STRONG = TopHit(
    relevance=LEXICAL_FLOOR,
    rerank_score=None,
    authority=AUTHORITY_FLOOR,
    provenance=Provenance.STATED,
    created_by_kind=CreatedByKind.HUMAN,
    supports=0,
)
hits = st.builds(
    TopHit,
    relevance=st.floats(0.0, 1.0),
    rerank_score=st.none() | st.floats(0.0, 1.0),
    authority=st.floats(0.0, 1.0),
    provenance=st.sampled_from(Provenance),
    created_by_kind=st.sampled_from(CreatedByKind),
    supports=st.integers(0, 5),
)


def test_inv_14_no_hit_is_none_and_any_hit_is_not() -> None:
    assert evidence(None) is Evidence.NONE
    assert evidence(replace(STRONG, relevance=0.0)) is Evidence.WEAK


@given(hits, st.booleans())
def test_inv_14_strong_means_relevant_and_vouched_for(top: TopHit, live: bool) -> None:
    if evidence(top, any_live=live) is Evidence.STRONG:
        assert not live
        assert top.relevance >= LEXICAL_FLOOR or (top.rerank_score or 0.0) >= RERANK_FLOOR
        assert top.authority >= AUTHORITY_FLOOR
        assert top.supports >= 2 or (top.provenance is Provenance.STATED and top.created_by_kind is CreatedByKind.HUMAN)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, Evidence.STRONG),
        ({"relevance": LEXICAL_FLOOR - 0.01}, Evidence.WEAK),
        ({"relevance": 0.0, "rerank_score": RERANK_FLOOR}, Evidence.STRONG),
        ({"relevance": 0.0, "rerank_score": RERANK_FLOOR - 0.01}, Evidence.WEAK),
        ({"authority": AUTHORITY_FLOOR - 0.01}, Evidence.WEAK),
        ({"provenance": Provenance.INFERRED}, Evidence.WEAK),
        ({"provenance": Provenance.INFERRED, "supports": 2}, Evidence.STRONG),
        ({"created_by_kind": CreatedByKind.AGENT, "supports": 1}, Evidence.WEAK),
        ({"created_by_kind": CreatedByKind.AGENT, "supports": 2}, Evidence.STRONG),
    ],
)
def test_inv_14_each_condition_of_the_gate(change: dict[str, object], expected: Evidence) -> None:
    assert evidence(replace(STRONG, **change)) is expected  # type: ignore[arg-type]
