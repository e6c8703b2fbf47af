import pytest
from hypothesis import given

from memory_plane.core.tokens import (
    estimate_tokens,
    running_weights,
    token_weight,
    tokens_of_weight,
)
from tests.core.strategies import any_text, document_text


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("x" * 4000, 1000),
        ("größe ünd so", 3),
        ("привет мир!!", 3),
        ("北京大学", 4),
        ("ひらカナ", 4),
        ("한국어", 3),
        ("ไทย", 3),
        ("ລາວ", 3),
        ("ខ្មែរ", 5),
        ("မြန်", 4),
        ("𠮷野家", 3),
        ("😀😀", 2),
        ("。、", 2),
    ],
)
def test_estimate(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(document_text, document_text)
def test_weights_add_up_and_the_estimate_is_monotone(left: str, right: str) -> None:
    assert token_weight(left + right) == token_weight(left) + token_weight(right)
    assert estimate_tokens(left) <= estimate_tokens(left + right) <= estimate_tokens(left) + estimate_tokens(right)


@given(any_text)
def test_running_weights_agree_with_the_estimate(text: str) -> None:
    sums = running_weights(text)
    assert len(sums) == len(text) + 1
    for position in range(len(text) + 1):
        assert tokens_of_weight(sums[position]) == estimate_tokens(text[:position])
