"""Where a text may be cut without breaking what a reader sees as one character.

A deliberate simplification of UAX 29: it errs on the side of keeping characters together, and looks back a bounded
distance only, so that a megabyte of combining marks still gets cut somewhere.
"""

import re
from unicodedata import category, combining

LOOK_BACK = 64
"""Code points; twice what Unicode calls stream-safe."""

_ZWJ = "\u200d"
_NEVER_FIRST = frozenset("\u200c\u200d\u0e33\u0eb3\uff9e\uff9f")
"""Joiners, Thai and Lao AM, half-width sound marks."""
_MARKS = ("Mn", "Mc", "Me")
_SPACE = re.compile(r"\s*")
_VIRAMA = 9
"""The combining class of the signs that bind two consonants."""


def is_boundary(text: str, position: int, floor: int = 0) -> bool:
    """Whether `text` may be cut before `position`; `floor` is a known boundary at or before it."""
    if position <= floor or position >= len(text):
        return True
    before, after = text[position - 1], text[position]
    if after < "\u0300" or before < " ":  # a control character takes no marks
        return not (before == "\r" and after == "\n")
    if _regional(after) and _regional(before):
        return _flags_end_at(text, position, floor)
    return not (
        category(after) in _MARKS
        or after in _NEVER_FIRST
        or before == _ZWJ
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= after <= "\U000e007f"  # tags of sub-regional flags
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        or _within_syllable(before, after)
        or (combining(before) == _VIRAMA and category(after) == "Lo")
    )


def boundary_before(text: str, position: int, floor: int = 0) -> int:
    """The last boundary at or before `position`, `floor` being one; `position` itself when none is near."""
    for candidate in range(position, max(floor, position - LOOK_BACK) - 1, -1):
        if is_boundary(text, candidate, floor):
            return candidate
    return position


def boundary_after(text: str, position: int, floor: int = 0) -> int:
    """The first boundary at or after `position`; `position` itself when none is near."""
    for candidate in range(position, min(len(text), position + LOOK_BACK) + 1):
        if is_boundary(text, candidate, floor):
            return candidate
    return position


def skip_space(text: str, position: int, floor: int = 0) -> int:
    """The next visible character, or the space before it when a combining mark sits on that space."""
    found = space_end(text, position)
    return found if found == position or is_boundary(text, found, floor) else found - 1


def space_end(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flags_end_at(text: str, position: int, floor: int) -> bool:
    """A flag is a pair of regional indicators, so an even number of them must lie before a cut."""
    start = position
    while start > floor and _regional(text[start - 1]):
        start -= 1
    return (position - start) % 2 == 0


def _within_syllable(before: str, after: str) -> bool:
    """Decomposed Hangul: a vowel or final never starts, an initial never ends a syllable."""
    if "\u1160" <= after <= "\u11ff" or "\ud7b0" <= after <= "\ud7fb":
        return True
    initial = "\u1100" <= before <= "\u115f" or "\ua960" <= before <= "\ua97c"
    return initial and ("\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3")
