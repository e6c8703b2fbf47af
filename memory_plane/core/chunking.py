"""Chunker `token.recursive`: cuts a text into overlapping slices under a token cap.

Each cut is taken at the strongest separator within reach: paragraph, line, sentence, word, else between two
characters. Every chunk is an exact slice of the source and never exceeds the cap, overlap included.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from memory_plane.contracts.errors import Invalid
from memory_plane.core.graphemes import (
    LOOK_BACK,
    boundary_after,
    boundary_before,
    is_boundary,
    skip_space,
    space_end,
)
from memory_plane.core.scripts import UNSPACED_LETTERS
from memory_plane.core.tokens import CHARS_PER_TOKEN, estimate_tokens, running_weights, tokens_of_weight

Count = Callable[[str], int]
"""Tokens of a text. Must be monotone: a slice never counts more than what it was cut from."""

PART_SEPARATOR = "\n\n"
"""What stands between ready-made chunks in the source text that is made of them."""

_PARAGRAPH = re.compile(r"(?>\r\n|\r|\n)[^\S\r\n]*[\r\n]\s*|\u2029\s*")
_LINE = re.compile(r"[\r\n\v\f\x85\u2028]\s*")
_END = "[.!?…؟۔।॥።։]"
_WIDE_END = "[。！？｡．]"
_SENTENCE = re.compile(
    rf"""{_END}(?!{_END})["'”’»)\]]*+\s+"""  # white space must follow, or "3.14" would be two sentences
    rf"|{_WIDE_END}(?!{_WIDE_END})[」』”’）】》]*+\s*"
)
_WORD = re.compile(r"\s+|[、，；：]")
_UNSPACED = re.compile(rf"(?<=[{UNSPACED_LETTERS}])(?=[{UNSPACED_LETTERS}])")
"""Between two letters of a script without spaces, where any place is as good a word end as another."""


@dataclass(frozen=True, slots=True)
class ChunkCaps:
    """`max_tokens` bounds a chunk with its overlap; both others are at most half of it."""

    max_tokens: int = 700
    min_tokens: int = 40
    overlap_tokens: int = 60

    def __post_init__(self) -> None:
        half = self.max_tokens // 2
        if self.max_tokens < 1 or not 0 <= self.min_tokens <= half or not 0 <= self.overlap_tokens <= half:
            raise Invalid(
                "Chunk caps must be positive, with min_tokens and overlap_tokens at most half of max_tokens.",
                code="chunk_caps",
            )


@dataclass(frozen=True, slots=True)
class TextChunk:
    """`source[start:end]` is the chunk's text."""

    start: int
    end: int
    token_count: int
    role: str | None = None


@dataclass(frozen=True, slots=True)
class SuppliedChunk:
    """A chunk made by an adapter, whose cuts and role (such as "question") are kept."""

    text: str
    role: str | None = None


def chunk(source: str, caps: ChunkCaps | None = None, count: Count = estimate_tokens) -> list[TextChunk]:
    """The chunks of `source`, in order; none for a text of white space only.

    Together they cover everything but white space, and each but the first begins with up to
    `caps.overlap_tokens` of the tail of the one before it. Invalid when a single character exceeds the cap.
    """
    cutter = _Cutter(source, caps or ChunkCaps(), count)
    return [TextChunk(start, end, cutter.tokens(start, end)) for start, end in cutter.spans()]


def chunk_supplied(
    parts: Iterable[SuppliedChunk], caps: ChunkCaps | None = None, count: Count = estimate_tokens
) -> tuple[str, list[TextChunk]]:
    """The source text that `parts` make, joined, and its chunks: each part cut on its own, blank ones left out."""
    kept = [part for part in parts if part.text and not part.text.isspace()]
    source = PART_SEPARATOR.join(part.text for part in kept)
    chunks: list[TextChunk] = []
    offset = 0
    for part in kept:
        chunks.extend(
            TextChunk(piece.start + offset, piece.end + offset, piece.token_count, part.role)
            for piece in chunk(part.text, caps, count)
        )
        offset += len(part.text) + len(PART_SEPARATOR)
    return source, chunks


class _Cutter:
    """One text being cut. `fresh` is where text begins that no chunk holds yet; positions are code points."""

    def __init__(self, source: str, caps: ChunkCaps, count: Count) -> None:
        self.source = source
        self.caps = caps
        self.count = count
        self.finish = len(source.rstrip())
        self.weights = running_weights(source) if count is estimate_tokens else None

    def tokens(self, start: int, end: int) -> int:
        if self.weights is None:
            return self.count(self.source[start:end])
        return tokens_of_weight(self.weights[end] - self.weights[start])

    def spans(self) -> Iterator[tuple[int, int]]:
        fresh = start = skip_space(self.source, 0)
        while fresh < self.finish:
            reach = self._reach(start, self.caps.max_tokens)
            if reach == self.finish:
                yield start, reach
                return
            if reach <= fresh:
                raise Invalid(
                    "A single character counts more tokens than a chunk may have; raise max_tokens.",
                    code="chunk_caps",
                )
            cut = self._cut(fresh, reach)
            end = fresh + len(self.source[fresh:cut].rstrip())
            if end > fresh:
                yield start, end
                fresh = skip_space(self.source, cut, end)
                start = self._overlap_start(start, end, fresh)
            else:  # a space whose combining mark did not fit beside it
                fresh = start = cut

    def _cut(self, fresh: int, reach: int) -> int:
        """Where the chunk whose new text begins at `fresh` ends: at most at `reach`, leaving no short remnant."""
        too_few = self.caps.min_tokens - 1
        if too_few < 0:
            return self._break(fresh + 1, reach, fresh)
        low = self._reach(fresh, too_few) + 1
        cut = self._break(low, reach, fresh)
        if self._reach(skip_space(self.source, cut, fresh), too_few) < self.finish:
            return cut
        latest = self._reach_back(fresh, self.finish, too_few) - 1
        if self.source[latest].isspace():
            latest = fresh + len(self.source[fresh:latest].rstrip()) - 1
        return self._break(low, latest, fresh) if latest > low else cut

    def _break(self, low: int, high: int, floor: int) -> int:
        """The last cut in [low, high], plus the white space after it, at the strongest separator there."""
        furthest = space_end(self.source, high)
        near = max(low, high - LOOK_BACK)
        for rung in (
            ((_PARAGRAPH, low),),
            ((_LINE, low),),
            ((_SENTENCE, low),),
            ((_WORD, low), (_UNSPACED, near)),
        ):
            ends = [
                match.end()
                for separator, begin in rung
                # One character more than may be used, for the separators that look at what follows.
                for match in separator.finditer(self.source, begin, furthest + 1)
            ]
            for end in sorted(ends, reverse=True):
                if low <= end <= furthest and is_boundary(self.source, end, floor):
                    return end
        cut = boundary_before(self.source, high, floor)
        return cut if cut > floor else high

    def _overlap_start(self, previous: int, end: int, fresh: int) -> int:
        """Where the chunk after [previous, end) begins: at a sentence, else a word, in that one's tail."""
        if not self.caps.overlap_tokens:
            return fresh
        earliest = self._reach_back(previous + 1, fresh, self.caps.overlap_tokens)
        near = min(end, earliest + LOOK_BACK)
        for rung in (((_LINE, end), (_SENTENCE, end)), ((_WORD, end), (_UNSPACED, near))):
            starts = [
                match.end() for separator, stop in rung for match in separator.finditer(self.source, earliest - 1, stop)
            ]
            for start in sorted(starts):
                if earliest <= start < end and is_boundary(self.source, start, previous):
                    return start
        start = boundary_after(self.source, earliest, previous)
        return start if start < end else fresh

    def _reach(self, start: int, budget: int) -> int:
        """The furthest end, up to the text's, such that [start, end) counts at most `budget`."""
        good, size = start, budget * CHARS_PER_TOKEN + 1
        while self.tokens(start, min(start + size, self.finish)) <= budget:
            good, size = start + size, size * 2
            if good >= self.finish:
                return self.finish
        bad = min(start + size, self.finish)
        while bad - good > 1:
            probe = (good + bad) // 2
            if self.tokens(start, probe) <= budget:
                good = probe
            else:
                bad = probe
        return good

    def _reach_back(self, floor: int, end: int, budget: int) -> int:
        """The earliest start, not before `floor`, such that [start, end) counts at most `budget`."""
        good, size = end, budget * CHARS_PER_TOKEN + 1
        while self.tokens(max(end - size, floor), end) <= budget:
            good, size = end - size, size * 2
            if good <= floor:
                return floor
        bad = max(end - size, floor)
        while good - bad > 1:
            probe = (good + bad) // 2
            if self.tokens(probe, end) <= budget:
                good = probe
            else:
                bad = probe
        return good
