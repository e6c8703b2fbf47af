"""Text hygiene: what may be stored as `text`, and how anything else is made so without ever failing."""

import re
from functools import lru_cache
from typing import Any, Literal
from unicodedata import category, combining, is_normalized, normalize

from memory_plane.contracts.errors import Invalid

MAX_JSON_DEPTH = 64
MAX_MARKS_IN_A_ROW = 30
"""Unicode's stream-safe bound (UAX 15). Beyond it a joiner is put in: sorting a long run of marks is quadratic."""

_REPLACEMENT = "\ufffd"
_GRAPHEME_JOINER = "\u034f"
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_INVISIBLE = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
"""Joiner, Hangul fillers and the empty braille cell: no category tells that they show nothing."""


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold `text`: no NUL, no surrogate."""
    return (text.isascii() and "\x00" not in text) or _UNSTORABLE.search(text) is None


def clean_text(text: str) -> str:
    """`text` as it is stored and derived from: without NULs, lone surrogates as U+FFFD, NFC."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    if text.isascii():
        return text
    return normalized("NFC", _SURROGATES.sub(_mended, text))


def clean_json(value: Any, depth: int = MAX_JSON_DEPTH) -> Any:
    """`value` with all its strings and keys clean; of keys that become equal the last wins.

    Invalid when nested deeper than `depth`.
    """
    if isinstance(value, str):
        return clean_text(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if depth == 0:
        raise Invalid(f"A value is nested deeper than {MAX_JSON_DEPTH} levels; flatten it.", code="too_deep")
    if isinstance(value, dict):
        return {clean_text(str(key)): clean_json(item, depth - 1) for key, item in value.items()}
    return [clean_json(item, depth - 1) for item in value]


def is_blank(text: str) -> bool:
    """Whether nothing in `text` shows: white space, control and format characters only."""
    return not any(_shows(char) for char in text)


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """`text` in that form, in linear time whatever it holds."""
    if text.isascii() or is_normalized(form, text):
        return text
    if len(text) > MAX_MARKS_IN_A_ROW:
        text = _long_run_of_marks().sub(rf"\g<0>{_GRAPHEME_JOINER}", text)
    return normalize(form, text)


def _mended(match: re.Match[str]) -> str:
    """A pair written as two surrogates is the character it stands for; a lone one stands for nothing."""
    found = match.group()
    return found.encode("utf-16", "surrogatepass").decode("utf-16") if len(found) == 2 else _REPLACEMENT


def _shows(char: str) -> bool:
    return not (char.isspace() or category(char) in ("Cc", "Cf") or char in _INVISIBLE)


@lru_cache(maxsize=1)
def _long_run_of_marks() -> re.Pattern[str]:
    """So many marks of non-zero combining class that another follows them too many."""
    ranges: list[list[int]] = []
    for code in (*range(0x300, 0x10000), *range(0x10000, 0x20000)):
        if combining(chr(code)):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    return re.compile(f"[{marks}]{{{MAX_MARKS_IN_A_ROW}}}(?=[{marks}])")
