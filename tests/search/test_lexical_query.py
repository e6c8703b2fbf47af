"""What a query asks of the text index: parsed without an error whatever it is, and bounded in cost."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.core.lexical_query import (
    MAX_PAIRS,
    MAX_TERMS,
    MAX_UNSEEN,
    LexicalPlan,
    MatchQuery,
    Term,
    inverse_frequency,
    parse,
    plan_terms,
    quoted,
)

lexemes = st.text("abcdefghijklmnop", min_size=1, max_size=6)
terms = st.lists(st.builds(Term, lexemes, st.integers(0, 100_000)), unique_by=lambda term: term.lexeme, max_size=60)


def test_words_phrases_and_exclusions() -> None:
    parsed = parse('When did "support group" -zoo -"old news" meet?')
    assert parsed.words == "When did meet?"
    assert parsed.phrases == ("support group",)
    assert parsed.excluded == ("zoo", "old news")
    assert not parsed.only_phrases


@pytest.mark.parametrize("query", ["5 - 3", "well-known fact", "--flag", "a -", "- x"])
def test_a_dash_that_stands_for_itself_excludes_nothing(query: str) -> None:
    assert parse(query).excluded == ()


def test_only_quoted_asks_for_that_wording() -> None:
    assert parse('"purple giraffe"').only_phrases
    assert not parse('"purple giraffe" zoo').only_phrases
    assert not parse('""').only_phrases


def test_an_open_quote_is_words() -> None:
    assert parse('find "purple giraffe').words == "find purple giraffe"


def test_unspaced_scripts_are_asked_for_by_grams() -> None:
    parsed = parse("LGBTQ支持小组 -猫")
    assert parsed.words.split() == ["LGBTQ"]
    assert len(parsed.grams) == 3
    assert len(parsed.excluded_grams) == 1


@given(st.text(max_size=300))
def test_any_text_parses(query: str) -> None:
    parsed = parse(query)
    assert "\x00" not in parsed.words
    if '"' not in query and "-" not in query:
        assert not parsed.phrases and not parsed.excluded


@given(terms, st.integers(0, 200_000), st.integers(0, 5_000))
def test_a_plan_is_bounded_and_always_has_the_rarest_known_term(found: list[Term], total: int, budget: int) -> None:
    plan = plan_terms(found, total, budget=budget)
    known = sorted((term for term in found if term.count > 0), key=lambda term: (term.count, term.lexeme))
    counts = {term.lexeme: term.count for term in found}
    assert len(plan.scored) <= MAX_TERMS + MAX_UNSEEN
    assert len(plan.pairs) <= MAX_PAIRS
    assert set(plan.driving) <= {term.lexeme for term in plan.scored}
    if known:
        assert known[0].lexeme in plan.driving
        # Beyond the first, whatever drives is within the budget.
        assert sum(counts[lexeme] for lexeme in plan.driving) <= max(budget, known[0].count)
    assert all(term.weight > 0.0 for term in plan.scored)
    assert plan.total_weight >= sum(term.weight for term in plan.scored) - 1e-9


@given(terms, st.integers(0, 200_000), st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_of_the_terms(found: list[Term], total: int, random: Random) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)
    assert plan_terms(found, total) == plan_terms(shuffled, total)


def test_rarer_terms_weigh_more() -> None:
    assert inverse_frequency(1, 1000) > inverse_frequency(10, 1000) > inverse_frequency(1000, 1000) > 0.0
    assert inverse_frequency(5, 0) > 0.0


def test_common_terms_come_in_together_where_they_are_rare_together() -> None:
    plan = plan_terms([Term("rare", 3), Term("big", 5_000), Term("house", 6_000)], 100_000, budget=2_000)
    assert plan.driving == ("rare",)
    assert plan.pairs == (("big", "house"),)


def test_nothing_is_pruned_without_a_budget_to_keep() -> None:
    plan = plan_terms([Term("rare", 3), Term("big", 5_000)], 100_000, budget=10**9)
    assert plan.driving == ("rare", "big")


@pytest.mark.parametrize(
    ("lexeme", "literal"), [("word", "'word'"), ("it's", "'it''s'"), ("a\\b", "'a\\\\b'"), ("g:kgen_1", "'g:kgen_1'")]
)
def test_lexemes_are_quoted_for_the_tsquery_type(lexeme: str, literal: str) -> None:
    assert quoted(lexeme) == literal


def test_a_match_is_the_marker_and_any_term_and_what_is_required() -> None:
    plan = LexicalPlan(driving=("a", "b"), pairs=(("c", "d"),))
    match = MatchQuery("g:1", plan, required=("'x' <-> 'y'",), excluded=("'z'",))
    assert match.tsquery == "'g:1' & ('a' | 'b' | ('c' & 'd')) & ('x' <-> 'y') & !('z')"
    assert match.restriction == "('x' <-> 'y') & !('z')"
    assert MatchQuery("g:1", LexicalPlan()).restriction == ""
