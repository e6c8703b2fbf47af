"""The part of a text to show for a hit: around what matched, an exact slice, cut between words."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from memory_plane.core.graphemes import boundary_after, boundary_before, is_boundary, skip_space
from memory_plane.core.scripts import UNSPACED_LETTERS
from memory_plane.core.text import clean_text

MAX_SNIPPET_CHARS = 240

_STEM_CHARS = 5
"""Words that begin alike so far count as forms of one another, in any language."""
_LEAD = 3
"""One part in so many of the room to spare goes before the match: what follows it tells more."""
_TOKEN = re.compile(rf"(?P<run>[{UNSPACED_LETTERS}]+)|(?:(?![{UNSPACED_LETTERS}])\w)+")
_WORD = re.compile(r"\w+")
_UNSPACED_LETTER = re.compile(f"[{UNSPACED_LETTERS}]")
_EPSILON = 1e-9
_STEP_BACK = 24
"""Characters looked at in one go for the end of a word."""
_SENTENCE_START = re.compile(r"(?<=[.!?…。！？\n])\s*(?=\S)")
_WORD_EDGE = re.compile(rf"(?<=\s)(?=\S)|(?<=\S)(?=\s)|(?<=[{UNSPACED_LETTERS}。、])(?=[{UNSPACED_LETTERS}])")


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    term: str


def snippet(text: str, query: str, max_chars: int = MAX_SNIPPET_CHARS) -> str:
    """At most `max_chars` characters of `text` around the densest cluster of the query's rarer words.

    The beginning when nothing matches, as for a dense hit. Leave words that the query excludes out of `query`.
    """
    first = skip_space(text, 0)
    last = len(text.rstrip())
    if last - first <= max_chars:
        return text[first:last]
    best = _densest(_matches(text, clean_text(query), max_chars), max_chars)
    if best is None:
        return text[first : _end(text, first, first, first + max_chars)].rstrip()
    begin = boundary_before(text, best[0])  # a letter bound to the one before it is no place to begin
    end = min(best[1], begin + max_chars)
    before = (max_chars - (end - begin)) // _LEAD
    before = max(before, begin + max_chars - last)  # near the end the room behind is used before the match
    start = _start(text, max(first, begin - before), begin)
    stop = min(start + max_chars, last)
    return text[start : stop if stop == last else _end(text, start, end, stop)].rstrip()


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Words, and the bigrams of unspaced runs (or a lone character), folded, with their places."""
    for found in _TOKEN.finditer(text):
        start, end = found.span()
        if found["run"] is None or end - start == 1:
            yield found.group().casefold(), start, end
        else:
            for left, right in pairwise(range(start, end)):
                yield text[left : right + 1], left, right + 1


def _matches(text: str, query: str, max_chars: int) -> list[_Match]:
    """What of the query stands where, in order."""
    terms, stems, lone = _terms(query)
    folded = text.casefold()
    if len(folded) == len(text) and _UNSPACED_LETTER.search(text) is None:
        # Plain words, each in its place: what nearly every text is.
        return [
            _Match(found.start(), min(found.end(), found.start() + max_chars), word[:_STEM_CHARS])
            for found in _WORD.finditer(folded)
            if (word := found.group()) in terms or word[:_STEM_CHARS] in stems
        ]
    matches = [
        _Match(start, min(end, start + max_chars), token[:_STEM_CHARS])
        for token, start, end in _tokens(text)
        if token in terms or token[:_STEM_CHARS] in stems
    ]
    if lone:
        # Within a run such a character is part of bigrams only.
        matches += [_Match(hit.start(), hit.end(), hit.group()) for hit in re.finditer(f"[{lone}]", text)]
        matches.sort(key=lambda match: match.start)
    return matches


@lru_cache(maxsize=64)
def _terms(query: str) -> tuple[frozenset[str], frozenset[str], str]:
    """Its words, how the long ones begin, and its characters of unspaced scripts that stand alone."""
    terms = frozenset(term for term, _, _ in _tokens(query))
    stems = frozenset(term[:_STEM_CHARS] for term in terms if len(term) >= _STEM_CHARS)
    return terms, stems, "".join(sorted(term for term in terms if _UNSPACED_LETTER.fullmatch(term)))


def _densest(matches: list[_Match], max_chars: int) -> tuple[int, int] | None:
    """The span within `max_chars` whose different terms weigh most, the first of equals: a term weighs the less the
    more often the text has it."""
    often = Counter(match.term for match in matches)
    inside: Counter[str] = Counter()
    best: tuple[int, int] | None = None
    weight = best_weight = 0.0
    left = 0
    for match in matches:
        inside[match.term] += 1
        if inside[match.term] == 1:
            weight += 1 / often[match.term]
        while match.end - matches[left].start > max_chars or inside[matches[left].term] > 1:
            gone = matches[left].term
            inside[gone] -= 1
            if not inside[gone]:
                weight -= 1 / often[gone]
            left += 1
        if weight > best_weight + _EPSILON:
            best, best_weight = (matches[left].start, match.end), weight
    return best


def _start(text: str, earliest: int, match_start: int) -> int:
    """The first sentence start, else word start, from `earliest` to the match."""
    if earliest == 0:
        return 0
    for edge in (_SENTENCE_START, _WORD_EDGE):
        for found in edge.finditer(text, earliest, match_start + 1):
            if earliest <= found.end() <= match_start and is_boundary(text, found.end()):
                return found.end()
    return boundary_after(text, earliest) if match_start - earliest > 1 else match_start


def _end(text: str, start: int, match_end: int, latest: int) -> int:
    """The last word end from the match to `latest`, or a cut between two characters where a word fills it all."""
    lowest, last = max(start, match_end), latest
    while last >= lowest:  # backwards in steps: the last edge is near
        first = max(lowest, last - _STEP_BACK)
        for found in reversed(list(_WORD_EDGE.finditer(text, first, last + 1))):
            if start < found.start() <= latest and is_boundary(text, found.start()):
                return found.start()
        last = first - 1
    cut = boundary_before(text, latest, start)
    return cut if cut > start else latest
