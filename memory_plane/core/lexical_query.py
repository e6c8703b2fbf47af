"""What a query asks of the lexical channel: its words, weighed by rarity, its phrases, and what it rules out."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_plane.core.grams import query_grams
from memory_plane.core.scripts import UNSPACED_LETTERS
from memory_plane.core.text import clean_text

MAX_TERMS = 24
"""Terms that are scored, the rarest first; a query of 4,096 characters may have hundreds."""
MAX_UNSEEN = 8
DRIVING_CHUNKS = 2_000
"""Chunks that the driving terms may bring in by their statistics: it bounds what one query costs."""
MAX_PAIRS = 6

_PIECE = re.compile(
    r'(?:(?<=\s)|^)(?P<minus>-)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))|"(?P<inner>[^"]*)"|(?P<rest>[^\s"]+)'
)
_UNSPACED = re.compile(f"[{UNSPACED_LETTERS}]+")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """`words` match where any of them does, a phrase only as a whole, and what is `excluded` keeps a text out.

    `grams` are the words of unspaced scripts, taken out of `words` and `phrases` alike.
    """

    words: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    grams: tuple[str, ...] = ()
    excluded_grams: tuple[tuple[str, ...], ...] = ()
    phrase_grams: tuple[tuple[str, ...], ...] = ()

    @property
    def only_phrases(self) -> bool:
        """The query is nothing but quoted: it asks for that wording and not for something like it."""
        return bool(self.phrases or self.phrase_grams) and not self.words.strip() and not self.grams


def parse(query: str) -> ParsedQuery:
    """Web-search syntax: `"a phrase"`, `-word`, `-"a phrase"`; everything else is words. Never an error."""
    words: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    for piece in _PIECE.finditer(clean_text(query)):
        phrase = piece["phrase"] if piece["phrase"] is not None else piece["inner"]
        word = piece["word"] or piece["rest"] or ""
        if piece["minus"] and (phrase is not None or word[:1].isalnum()):
            excluded.append(phrase if phrase is not None else word)
        elif phrase is not None:
            (phrases if phrase.strip() else words).append(phrase)
        else:
            words.append((piece["minus"] or "") + word)
    text = " ".join(words)
    return ParsedQuery(
        words=_spaced(text),
        phrases=tuple(spaced for phrase in phrases if (spaced := _spaced(phrase).strip())),
        excluded=tuple(spaced for item in excluded if (spaced := _spaced(item).strip())),
        grams=tuple(query_grams(text)),
        phrase_grams=tuple(tuple(found) for phrase in phrases if (found := query_grams(phrase))),
        excluded_grams=tuple(tuple(found) for item in excluded if (found := query_grams(item))),
    )


def _spaced(text: str) -> str:
    """Without the runs that PostgreSQL would take for one word each and never find."""
    return text if text.isascii() else _UNSPACED.sub(" ", text)


@dataclass(frozen=True, slots=True)
class Term:
    """A lexeme and the number of chunks of the generation that have it (0: never seen)."""

    lexeme: str
    count: int


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    lexeme: str
    weight: float


@dataclass(frozen=True, slots=True)
class LexicalPlan:
    """`scored` terms make the score. A chunk comes into question when it has a term of `driving` or both of a pair;
    very common terms are left out of these, the rarest never. `missing` is the weight of terms that are not scored,
    `known` that of the scored ones that the generation has at all."""

    scored: tuple[WeightedTerm, ...] = ()
    driving: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    missing: float = 0.0
    known: float = 0.0

    @property
    def total_weight(self) -> float:
        return self.missing + sum(term.weight for term in self.scored)


def inverse_frequency(count: int, total: int) -> float:
    """The weight of a term that `count` of `total` chunks have; positive whatever the statistics say."""
    total = max(total, count)
    return math.log(1.0 + (total - count + 0.5) / (count + 0.5))


def plan_terms(terms: Sequence[Term], total: int, *, budget: int = DRIVING_CHUNKS) -> LexicalPlan:
    """Weigh the terms and choose those that drive the search, within about `budget` chunks."""
    known = sorted((term for term in terms if term.count > 0), key=lambda term: (term.count, term.lexeme))
    unseen = sorted((term for term in terms if term.count <= 0), key=lambda term: term.lexeme)
    kept = [*known[:MAX_TERMS], *unseen[:MAX_UNSEEN]]
    dropped = [*known[MAX_TERMS:], *unseen[MAX_UNSEEN:]]
    if not kept:
        return LexicalPlan()
    driving, common, spent = _driving(kept, budget)
    return LexicalPlan(
        scored=tuple(WeightedTerm(term.lexeme, inverse_frequency(term.count, total)) for term in kept),
        driving=tuple(term.lexeme for term in driving),
        pairs=_pairs(common, total, budget - spent),
        missing=sum(inverse_frequency(term.count, total) for term in dropped),
        known=sum(inverse_frequency(term.count, total) for term in known[:MAX_TERMS]),
    )


def _driving(kept: Sequence[Term], budget: int) -> tuple[list[Term], list[Term], int]:
    """The rarest terms that fit the budget (the rarest known one always), the others, and what is spent."""
    driving: list[Term] = []
    common: list[Term] = []
    spent = 0
    has_known = False
    for term in kept:
        if spent + term.count <= budget or (term.count > 0 and not has_known):
            driving.append(term)
            spent += term.count
            has_known = has_known or term.count > 0
        else:
            common.append(term)
    return driving, common, spent


def _pairs(common: Sequence[Term], total: int, budget: int) -> tuple[tuple[str, str], ...]:
    """Common terms that are rare together, if words were independent."""
    pairs: list[tuple[str, str]] = []
    candidates = [
        (left.count * right.count / max(total, 1), left.lexeme, right.lexeme)
        for place, left in enumerate(common)
        for right in common[place + 1 :]
    ]
    for expected, left, right in sorted(candidates):
        if len(pairs) >= MAX_PAIRS or expected > budget:
            break
        pairs.append((left, right))
        budget -= int(expected)
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class MatchQuery:
    """The pieces of a tsquery, in PostgreSQL's own syntax."""

    marker: str
    plan: LexicalPlan
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def restriction(self) -> str:
        """What every hit must satisfy, whatever channel found it; '' when the query asks for nothing special."""
        return " & ".join([*(f"({item})" for item in self.required), *(f"!({item})" for item in self.excluded)])

    @property
    def tsquery(self) -> str:
        """The chunks of the generation that come into question."""
        either = [quoted(lexeme) for lexeme in self.plan.driving]
        either += [f"({quoted(left)} & {quoted(right)})" for left, right in self.plan.pairs]
        parts = [quoted(self.marker)]
        if either:
            parts.append(f"({' | '.join(either)})")
        if self.restriction:
            parts.append(self.restriction)
        return " & ".join(parts)


def quoted(lexeme: str) -> str:
    """A lexeme as a literal of the tsquery type."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def all_of(grams: Sequence[str]) -> str:
    return " & ".join(quoted(gram) for gram in grams)
