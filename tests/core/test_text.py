import unicodedata
from typing import Any

import pytest
from hypothesis import given

from memory_plane.contracts.errors import Invalid
from memory_plane.core.text import clean_json, clean_text, is_blank, is_storable, normalized
from tests.core.strategies import any_text, json_values


@given(any_text)
def test_inv_07_any_text_becomes_storable_and_stays_as_it_then_is(text: str) -> None:
    clean = clean_text(text)
    clean.encode("utf-8")
    assert "\x00" not in clean
    assert is_storable(clean)
    assert unicodedata.is_normalized("NFC", clean)
    assert clean_text(clean) == clean


@given(any_text)
def test_inv_07_storable_is_what_utf8_without_nul_can_hold(text: str) -> None:
    try:
        expected = b"\x00" not in text.encode("utf-8")
    except UnicodeEncodeError:
        expected = False
    assert is_storable(text) is expected


@given(json_values)
def test_inv_07_any_json_becomes_storable(value: Any) -> None:
    def check(item: Any) -> None:
        if isinstance(item, str):
            assert is_storable(item)
        elif isinstance(item, dict):
            for key, inner in item.items():
                check(key)
                check(inner)
        elif isinstance(item, list):
            for inner in item:
                check(inner)

    clean = clean_json(value)
    check(clean)
    assert clean_json(clean) == clean


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("plain", "plain"),
        ("a\x00b", "ab"),
        ("cafe\u0301", "café"),
        ("x\ud800y", "x\ufffdy"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("\u202eabc", "\u202eabc"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("\x00", ""),
    ],
)
def test_inv_07_each_kind_of_bad_character_has_its_answer(raw: str, clean: str) -> None:
    assert clean_text(raw) == clean


def test_inv_07_keys_that_become_equal_do_not_fail() -> None:
    assert clean_json({"a\x00": 1, "a": 2, "n": {"e\u0301": ["\x00"]}}) == {"a": 2, "n": {"é": [""]}}


def test_json_nested_without_end_is_refused() -> None:
    value: Any = "leaf"
    for _ in range(5_000):
        value = [value]
    with pytest.raises(Invalid, match="nested"):
        clean_json(value)


def test_inv_07_a_megabyte_of_unsorted_marks_is_normalized_in_bounded_runs() -> None:
    clean = clean_text("a" + "\u0301\u0316" * 500_000)
    assert unicodedata.is_normalized("NFC", clean)
    assert clean.replace("\u034f", "").count("\u0316") == 500_000


def test_marks_within_the_bound_are_left_alone() -> None:
    text = "a" + "\u0316\u0301" * 15
    assert clean_text("a" + "\u0301\u0316" * 15) == unicodedata.normalize("NFC", "a" + "\u0301\u0316" * 15)
    assert "\u034f" not in clean_text(text)


def test_compatibility_form_folds_widths() -> None:
    assert normalized("NFKC", "ｶﾞ２") == "ガ2"


@pytest.mark.parametrize("text", ["", " \n\t\u3000", "\u200b\ufeff\u200d", "\x00\x07", "\u3164", "\u202e "])
def test_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", " . ", "\u200bx", "\u0301", "😀", "\ud800"])
def test_not_blank(text: str) -> None:
    assert not is_blank(text)
