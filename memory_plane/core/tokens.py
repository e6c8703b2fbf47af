"""The default token estimate: no tokenizer, the same everywhere, exact under concatenation.

A character of an alphabetic script weighs a quarter of a token, one of a script without spaces (Han, kana,
Hangul, Thai, …) or an emoji a whole one. Weights add up exactly, so a cap can be proven on any slice.
"""

import re
from array import array
from collections.abc import Sequence
from itertools import accumulate

from memory_plane.core.scripts import DENSE

CHARS_PER_TOKEN = 4

_DENSE_RUN = re.compile(f"[{DENSE}]+")


def token_weight(text: str) -> int:
    """Quarter tokens: 1 a character, 4 a dense one. `token_weight(a + b) == token_weight(a) + token_weight(b)`."""
    if text.isascii():
        return len(text)
    dense = len(text) - len(_DENSE_RUN.sub("", text))
    return len(text) + (CHARS_PER_TOKEN - 1) * dense


def tokens_of_weight(weight: int) -> int:
    """Whole tokens, rounded up."""
    return -(-weight // CHARS_PER_TOKEN)


def estimate_tokens(text: str) -> int:
    """Tokens a model will probably make of `text`, rounded up; a slice never counts more than the whole."""
    return tokens_of_weight(token_weight(text))


def running_weights(text: str) -> Sequence[int]:
    """For every position the weight of the text before it: `len(text) + 1` ascending numbers."""
    if text.isascii():
        return range(len(text) + 1)
    weights = text.translate(_Weights()).encode("latin-1")
    return array("I", accumulate(weights, initial=0))


class _Weights(dict[int, str]):
    """Code point → a character whose code is its weight; filled as the text asks for it."""

    def __missing__(self, code: int) -> str:
        weight = "\x04" if _DENSE_RUN.match(chr(code)) else "\x01"
        self[code] = weight
        return weight
