"""What was captured around a document says what it is about.

The answer to a question often stands in the line after the one that has the question's words. So each candidate
gets a share of the scores of the candidates near it in the same *stream*: documents of one creator, adapter and
audience, in the order in which they happened. All of a stream is visible to whoever sees one of it, so no hidden
document decides who is a neighbour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

FALLOFF = (1.0, 0.67, 0.5, 0.33, 0.23, 0.17)
"""Share of a neighbour's score by its distance, in documents, relative to the recipe's weight."""
REACH = len(FALLOFF)
ORDINARY = 20
"""Rank of the candidate whose score is ordinary for a query."""
MUCH = 0.5
BELOW = 0.75
"""See `held`: the share of a question that is much of it, and how near to such a one the others may come. Near enough
for boosts that differ greatly, and for nothing else."""
PASSAGE_SHARE = 0.15
BREAK = 4
"""See `supported`: the share, and the characters of white space that may be between two that adjoin."""
MAX_CHUNKS = 2
"""A document of more chunks speaks for itself: measured, what stands around it only blurs whole chat sessions."""


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """A candidate in (a run of) its stream. `gap` counts the documents between it and the candidate before it in the
    same one, REACH when there are more or there is none."""

    key: str
    stream: int
    gap: int


def lifted(scores: Mapping[str, float], places: Sequence[StreamPlace], weight: float) -> dict[str, float]:
    """`scores` with each one's surroundings added. `places` is ordered within every stream.

    A neighbour lends of what it has above the ordinary candidate, so that a crowd of equals lifts nobody.
    """
    result = dict(scores)
    if weight <= 0.0 or not scores:
        return result
    ordinary = sorted(scores.values(), reverse=True)[: ORDINARY + 1][-1]
    for index, place in enumerate(places):
        distance = 0
        for back in range(index, 0, -1):
            later, earlier = places[back], places[back - 1]
            if earlier.stream != place.stream:
                break
            distance += later.gap + 1
            if distance > REACH:
                break
            share = weight * FALLOFF[distance - 1]
            result[place.key] += share * max(0.0, scores[earlier.key] - ordinary)
            result[earlier.key] += share * max(0.0, scores[place.key] - ordinary)
    return result


def supported(passages: Sequence[tuple[int, int, float]]) -> list[float]:
    """Scores of passages (start, end, score) of one document with a share of those that adjoin them: what is found in
    the midst of other finds is the likelier place. Chunks overlap, or white space is between them."""
    lent = [0.0] * len(passages)
    order = sorted(range(len(passages)), key=lambda index: passages[index][:2])
    for left, right in pairwise(order):
        if passages[right][0] <= passages[left][1] + BREAK:
            lent[left] = max(lent[left], passages[right][2])
            lent[right] = max(lent[right], passages[left][2])
    return [score + PASSAGE_SHARE * more for (_, _, score), more in zip(passages, lent, strict=True)]


def held(lifted_to: Mapping[str, float], own: Mapping[str, float], said: Mapping[str, float]) -> dict[str, float]:
    """What is said of a subject in so many words stays ahead of what merely stands in good company.

    `said` is the share of the question that each one's words have, by rarity. Where one says much of it, those that
    say less than half of that are not lifted near it; what they are worth by themselves they keep.
    """
    most = max((said.get(key, 0.0) for key in lifted_to), default=0.0)
    if most < MUCH:
        return dict(lifted_to)
    ahead = max(score for key, score in lifted_to.items() if said.get(key, 0.0) >= most)
    return {
        key: score if 2.0 * said.get(key, 0.0) >= most else min(score, max(own[key], BELOW * ahead))
        for key, score in lifted_to.items()
    }
