"""Character n-grams, by which texts in scripts without spaces are found word by word.

PostgreSQL's parser takes a whole run of Han, kana, Thai, … for one word, so nothing within it is found. Runs are
therefore indexed by their bigrams, each one word for that parser. A marker letter, which no living script uses,
keeps them apart from ordinary words, whose statistics they must not touch.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import add

from memory_plane.core.scripts import LONE_WORDS, MARKS, UNSPACED_LETTERS
from memory_plane.core.text import clean_text, normalized

MARKER = "\u01bb"
MAX_GRAMS = 16_000
"""Of one text; the positions of a tsvector end at 16,383."""
MAX_QUERY_GRAMS = 256

_RUN = re.compile(f"[{UNSPACED_LETTERS}]+")
_MARK = re.compile(f"[{MARKS}]")
_UNIT = re.compile(f"[{UNSPACED_LETTERS}][{MARKS}]{{0,4}}")  # bounded, as is the length of a lexeme
_LONE_WORD = re.compile(f"[{LONE_WORDS}]")
_LONE_IN_QUERY = re.compile(f"(?<![{LONE_WORDS}])[{LONE_WORDS}](?![{LONE_WORDS}])")
_IGNORED = re.compile("[\u00ad\u034f\u180b-\u180f\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff]+")
"""Variation selectors, joiners and zero-width spaces: the same word with and without them."""
_FIRST_IGNORED_ABOVE = "\U000e0100"
_IGNORED_ABOVE = re.compile("[\U000e0100-\U000e01ef]+")


def grams(text: str) -> str:
    """The words under which the unspaced runs of `text` are indexed, separated by spaces; '' when it has none.

    All bigrams, then each Han and Hangul character once: 猫 or 책 is a word of its own within any run.
    """
    words: list[str] = []
    lone: dict[str, None] = {}
    for run in _runs(text):
        units = _units(run)
        if len(units) == 1:
            lone[units[0]] = None
        else:
            words.extend(map(add, units, units[1:]))
            lone.update(dict.fromkeys(_LONE_WORD.findall(run)))
        if len(words) >= MAX_GRAMS:
            break
    del words[MAX_GRAMS:]
    words.extend(lone)
    return MARKER + f" {MARKER}".join(words) if words else ""


def query_grams(query: str) -> list[str]:
    """The words to look for, any of them, each once; [] when the query has no unspaced run.

    Bigrams; a single character only where it stands alone (猫) or alone among kana (猫は).
    """
    found: dict[str, None] = {}
    for run in _runs(clean_text(query)):
        units = _units(run)
        pairs = list(map(add, units, units[1:]))
        found.update(dict.fromkeys([*(pairs or units), *_LONE_IN_QUERY.findall(run)]))
        if len(found) >= MAX_QUERY_GRAMS:
            break
    return [MARKER + gram for gram in islice(found, MAX_QUERY_GRAMS)]


def _runs(text: str) -> Iterator[str]:
    if text.isascii():
        return
    folded = _IGNORED.sub("", normalized("NFKC", text))
    if max(folded, default="") >= _FIRST_IGNORED_ABOVE:
        folded = _IGNORED_ABOVE.sub("", folded)
    for match in _RUN.finditer(folded):
        yield match.group()


def _units(run: str) -> Sequence[str]:
    """Letters with the marks that sit on them."""
    return _UNIT.findall(run) if _MARK.search(run) else run
