import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.core.grams import MARKER, MAX_GRAMS, MAX_QUERY_GRAMS, grams, query_grams
from tests.core.strategies import any_text, document_text


def plain(words: str | list[str]) -> list[str]:
    listed = words.split() if isinstance(words, str) else words
    assert all(word.startswith(MARKER) for word in listed)
    return [word.removeprefix(MARKER) for word in listed]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("plain words, größer", []),
        ("北京大学", ["北京", "京大", "大学", "北", "京", "大", "学"]),
        ("in 北京 live", ["北京", "北", "京"]),
        ("猫", ["猫"]),
        ("あ", ["あ"]),
        ("ひらカナ", ["ひら", "らカ", "カナ"]),
        ("ｶﾞﾗｽ", ["ガラ", "ラス"]),
        ("か\u3099く", ["がく"]),
        ("책을", ["책을", "책", "을"]),
        ("葛\U000e0100城", ["葛城", "葛", "城"]),
        ("ที่นี่", ["ที่นี่"]),
        ("ไทย", ["ไท", "ทย"]),
        ("中。国", ["中", "国"]),
        ("ภาษา\u200bไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("😀", []),
    ],
)
def test_grams_of_a_text(text: str, expected: list[str]) -> None:
    assert plain(grams(text)) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", []),
        ("when did she go?", []),
        ("北京", ["北京"]),
        ("北京北京", ["北京", "京北"]),
        ("猫", ["猫"]),
        ("猫は", ["猫は", "猫"]),
        ("책", ["책"]),
        ("책을", ["책을"]),
    ],
)
def test_grams_of_a_query(query: str, expected: list[str]) -> None:
    assert plain(query_grams(query)) == expected


RUN = st.text(st.sampled_from("北京大学猫犬がはカナ책을읽"), min_size=1, max_size=12)


@given(RUN, RUN, RUN)
def test_inv_07_a_phrase_is_found_wherever_it_stands(before: str, phrase: str, after: str) -> None:
    wanted = [gram for gram in query_grams(phrase) if len(gram) > 2 or len(phrase) > 1]
    assert set(wanted) <= set(grams(f"{before}{phrase}{after}").split())


@given(st.sampled_from("北京大学猫책을"), RUN, RUN)
def test_inv_07_one_han_or_hangul_character_is_found_within_a_run(char: str, before: str, after: str) -> None:
    assert query_grams(char)[0] in grams(f"{before}{char}{after}").split()


@given(document_text)
def test_composed_and_decomposed_forms_meet(text: str) -> None:
    assert grams(unicodedata.normalize("NFD", text)) == grams(unicodedata.normalize("NFC", text))


@given(any_text)
def test_inv_07_grams_never_fail_and_are_whole_words(text: str) -> None:
    for gram in [*grams(text).split(" "), *query_grams(text)]:
        assert gram == "" or (gram.startswith(MARKER) and gram[1:].strip() == gram[1:] != "")


def test_output_is_bounded() -> None:
    every = "".join(chr(code) for code in range(0x4E00, 0x9FFF))
    assert len(plain(grams(every * 10))) <= MAX_GRAMS + len(every)
    assert len(query_grams(every)) == MAX_QUERY_GRAMS
    assert max(map(len, grams("ย" + "\u0e48" * 5_000).split())) <= 12
