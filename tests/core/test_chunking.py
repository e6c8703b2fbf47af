"""Invariant 8: spans reproduce the source, none over the cap, the union covers, overlap only where it belongs."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_plane.contracts.errors import Invalid
from memory_plane.core.chunking import ChunkCaps, SuppliedChunk, TextChunk, chunk, chunk_supplied
from memory_plane.core.graphemes import is_boundary
from memory_plane.core.tokens import estimate_tokens
from tests.core.strategies import document_text


@st.composite
def caps(draw: st.DrawFn, least: int = 1) -> ChunkCaps:
    largest = draw(st.integers(least, 60))
    half = largest // 2
    return ChunkCaps(largest, draw(st.integers(0, half)), draw(st.integers(0, half)))


def assert_sound(source: str, chunks: list[TextChunk], limits: ChunkCaps) -> None:
    covered = 0
    for piece in chunks:
        text = source[piece.start : piece.end]
        assert text.strip()
        assert piece.token_count == estimate_tokens(text) <= limits.max_tokens
        if piece.start > covered:
            assert source[covered : piece.start].isspace()
        covered = piece.end
    assert not source[covered:].strip()
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
        assert estimate_tokens(source[after.start : before.end]) <= limits.overlap_tokens


@settings(max_examples=300)
@given(document_text, caps())
@example(" \u0e35" * 3, ChunkCaps(1, 0, 0))
@example("a\u0301" * 40, ChunkCaps(3, 1, 1))
@example("👨\u200d👩\u200d👧" * 5, ChunkCaps(2, 1, 1))
def test_inv_08_chunks_are_sound_whatever_the_text_and_the_caps(source: str, limits: ChunkCaps) -> None:
    chunks = chunk(source, limits)
    assert_sound(source, chunks, limits)
    assert chunks == chunk(source, limits)


@settings(max_examples=300)
@given(document_text, caps(least=32))
@example("\r\n" + "\u0301" * 5, ChunkCaps(32, 0, 0))
@example("abcdefg \u0301" * 40, ChunkCaps(32, 4, 0))
@example("ที่" * 60, ChunkCaps(32, 4, 4))
def test_inv_08_no_cut_within_a_character(source: str, limits: ChunkCaps) -> None:
    for piece in chunk(source, limits):
        assert is_boundary(source, piece.start)
        assert is_boundary(source, piece.end)


@settings(max_examples=300)
@given(document_text, st.integers(40, 80), st.integers(0, 10), st.integers(1, 10))
def test_inv_08_no_trailing_remnant_under_the_minimum(source: str, largest: int, overlap: int, least: int) -> None:
    chunks = chunk(source, ChunkCaps(largest, least, overlap))
    if len(chunks) > 1:
        fresh = source[chunks[-2].end : chunks[-1].end]
        assert estimate_tokens(fresh) >= least


@given(document_text)
def test_inv_08_without_overlap_no_character_is_in_two_chunks(source: str) -> None:
    for before, after in pairwise(chunk(source, ChunkCaps(20, 4, 0))):
        assert before.end <= after.start


@given(document_text, caps(least=8))
def test_inv_08_the_fast_measure_and_a_given_one_cut_alike(source: str, limits: ChunkCaps) -> None:
    assert chunk(source, limits, count=lambda text: estimate_tokens(text)) == chunk(source, limits)


@given(st.lists(st.tuples(document_text, st.none() | st.just("answer")), max_size=6), caps())
def test_inv_08_supplied_chunks_keep_cuts_and_roles(parts: list[tuple[str, str | None]], limits: ChunkCaps) -> None:
    source, chunks = chunk_supplied([SuppliedChunk(text, role) for text, role in parts], limits)
    covered = 0
    for piece in chunks:
        assert piece.token_count == estimate_tokens(source[piece.start : piece.end]) <= limits.max_tokens
        assert not source[covered : piece.start].strip()
        covered = piece.end
    assert not source[covered:].strip()
    kept = [(text, role) for text, role in parts if text.strip()]
    assert source == "\n\n".join(text for text, _ in kept)
    offset = 0
    for text, role in kept:
        mine = [piece for piece in chunks if offset <= piece.start < offset + len(text)]
        assert mine
        assert {piece.role for piece in mine} == {role}
        assert all(piece.end <= offset + len(text) for piece in mine)
        offset += len(text) + 2


@pytest.mark.parametrize("source", ["", " ", "\n\r\n\t\u3000", " " * 10_000])
def test_white_space_makes_no_chunks(source: str) -> None:
    assert chunk(source) == []


def test_a_short_text_is_one_chunk_without_its_margins() -> None:
    assert chunk("  hello world \n") == [TextChunk(2, 13, 3)]


def texts(source: str, limits: ChunkCaps) -> list[str]:
    return [source[piece.start : piece.end] for piece in chunk(source, limits)]


def test_paragraphs_come_before_lines_before_sentences_before_words() -> None:
    limits = ChunkCaps(10, 2, 0)
    assert texts("One two three.\n\nFour five. Six\nseven eight nine ten.", limits) == [
        "One two three.",
        "Four five. Six\nseven eight nine ten.",
    ]
    assert texts("One two. Three\nfour five. Six seven eight nine", limits) == [
        "One two. Three",
        "four five. Six seven eight nine",
    ]
    assert texts("One two three. Four five six seven eight nine", limits) == [
        "One two three.",
        "Four five six seven eight nine",
    ]
    assert texts("One two three four five six seven eight nine ten", limits) == [
        "One two three four five six seven eight",
        "nine ten",
    ]
    assert texts("x" * 100, limits) == ["x" * 40, "x" * 40, "x" * 20]


def test_windows_line_ends_are_lines_not_paragraphs() -> None:
    assert texts("One two.\r\n\r\nThree\r\nfour five six seven eight", ChunkCaps(10, 2, 0)) == [
        "One two.",
        "Three\r\nfour five six seven eight",
    ]


def test_a_remnant_is_rebalanced_rather_than_left_short() -> None:
    source = "word " * 15 + "end"
    pieces = texts(source, ChunkCaps(18, 6, 0))
    assert len(pieces) == 2
    assert estimate_tokens(pieces[-1]) >= 6


def test_overlap_starts_at_a_sentence_of_the_tail() -> None:
    source = "The first sentence here is long enough. A tail. Then more text follows and goes on and on."
    first, second = texts(source, ChunkCaps(14, 2, 5))
    assert first.endswith("A tail.")
    assert second.startswith("A tail. Then more")


def test_overlap_starts_at_a_word_when_the_tail_has_no_sentence() -> None:
    source = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho"
    pieces = texts(source, ChunkCaps(10, 2, 3))
    for before, after in pairwise(pieces):
        head = after.split()[0]
        assert head in before.split()


def test_chinese_is_cut_after_a_sentence() -> None:
    source = "北京大学在北京。" * 10
    assert all(text.endswith("。") for text in texts(source, ChunkCaps(20, 2, 0)))


def test_a_sentence_does_not_end_within_a_number_or_before_its_quote_closes() -> None:
    source = 'He said "it is 3.14159 or so." Then he left the room and nobody saw him again.'
    assert texts(source, ChunkCaps(12, 2, 0))[0] == 'He said "it is 3.14159 or so."'


@pytest.mark.parametrize("limits", [(0, 0, 0), (10, 6, 0), (10, 0, 6), (10, -1, 0), (10, 0, -1)], ids=str)
def test_caps_that_cannot_work_are_refused(limits: tuple[int, int, int]) -> None:
    with pytest.raises(Invalid):
        ChunkCaps(*limits)


def test_a_character_over_the_cap_is_refused() -> None:
    with pytest.raises(Invalid, match="single character"):
        chunk("北京" * 50, ChunkCaps(2, 0, 0), count=lambda text: len(text.encode()))


HUGE = {
    "one word": "a" * 1_000_000,
    "marks": "a" + "\u0301" * 1_000_000,
    "flags": "🇩🇪" * 500_000,
    "dots": "." * 1_000_000,
    "white space inside": "a" + " " * 1_000_000 + "b",
    "newlines": "a\n" * 500_000,
    "closers": ".)" * 500_000,
    "han": "北京大学" * 250_000,
    "unique words": " ".join(f"w{number:06d}xxxxxxxxxxxxxxxxx" for number in range(200_000)),
}


@pytest.mark.timeout(60)  # quadratic work would take hours
@pytest.mark.parametrize("name", HUGE)
def test_inv_08_huge_texts_end(name: str) -> None:
    source = HUGE[name]
    chunks = chunk(source)
    assert_sound(source, chunks, ChunkCaps())
