import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_plane.core.graphemes import is_boundary
from memory_plane.core.snippets import MAX_SNIPPET_CHARS, snippet
from tests.core.strategies import any_text, document_text

FILLER = "The weather was fine and nobody said much about it at all. " * 10
NEEDLE = "Caroline went to the LGBTQ support group on Sunday."


@pytest.mark.parametrize(
    "query", ["When did Caroline go to the LGBTQ support group?", "supporting groups", "lgbtq", "GROUP support"]
)
def test_the_match_is_shown_wherever_it_stands(query: str) -> None:
    for text in (NEEDLE + " " + FILLER, FILLER + NEEDLE, FILLER + NEEDLE + " " + FILLER):
        found = snippet(text, query)
        assert NEEDLE in found
        assert found in text
        assert len(found) <= MAX_SNIPPET_CHARS


def test_it_starts_at_a_sentence_and_ends_at_a_word() -> None:
    found = snippet(FILLER + NEEDLE + " " + FILLER, "LGBTQ")
    assert found.startswith(("The weather", "Caroline"))
    assert (FILLER + NEEDLE + " " + FILLER).split(found)[1][0] == " "
    assert len(found) > MAX_SNIPPET_CHARS - 20


def test_one_rare_word_counts_for_more_than_two_common_ones() -> None:
    text = "alpha beta here. " * 10 + FILLER + "A zeppelin came. " + FILLER
    assert "zeppelin" in snippet(text, "alpha beta zeppelin")


def test_words_together_count_for_more_than_apart() -> None:
    text = "alpha here. " + FILLER + "beta there. " + FILLER + "alpha meets beta. " + FILLER
    assert "alpha meets beta" in snippet(text, "alpha beta")


def test_without_a_match_the_beginning_is_shown() -> None:
    found = snippet("  \n" + FILLER, "zeppelin")
    assert FILLER.startswith(found)
    assert len(found) > MAX_SNIPPET_CHARS - 20
    assert FILLER[len(found)] == " "


def test_a_short_text_is_shown_whole() -> None:
    assert snippet("  a few words\n", "words") == "a few words"
    assert snippet("", "x") == ""


@pytest.mark.parametrize("query", ["图书馆", "馆", "图书"])
def test_chinese(query: str) -> None:
    filler = "今天的天气很好我们都没有说什么。" * 30
    text = filler + "她星期天去了图书馆看书。" + filler
    found = snippet(text, query)
    assert "图书馆" in found
    assert found in text
    assert len(found) <= MAX_SNIPPET_CHARS


def test_a_lone_character_at_the_end_of_a_run() -> None:
    assert "猫" in snippet("今天的天气很好" * 60 + "大猫 x", "猫")


def test_inv_07_a_word_longer_than_the_snippet_is_cut() -> None:
    text = "x" * 1_000_000
    assert snippet(text, text) == "x" * MAX_SNIPPET_CHARS
    assert snippet("before " + text, text) == "x" * MAX_SNIPPET_CHARS
    assert snippet("before " + text, "zeppelin") == "before"


def test_a_composed_query_finds_a_composed_text() -> None:
    assert "café" in snippet(FILLER + "the café. " + FILLER, "cafe\u0301")


@given(document_text, document_text, st.integers(24, 80))
@example("ที่" * 60, "x", 40)
@example("क्षि" + "\n" * 8 + "\u0301" * 10 + "000", "0क्षि000", 24)
@example("x \u0301abc" * 60, "abc", 40)
def test_inv_07_a_snippet_is_a_slice_between_characters(text: str, query: str, most: int) -> None:
    found = snippet(text, query, most)
    assert len(found) <= most
    places = [place for place in range(len(text) + 1) if text.startswith(found, place)]
    assert any(is_boundary(text, place) and is_boundary(text, place + len(found)) for place in places)
    assert bool(found) == bool(text.strip())


@given(any_text, any_text)
def test_inv_07_any_text_and_query_have_a_snippet(text: str, query: str) -> None:
    assert snippet(text * 5, query) in text * 5
