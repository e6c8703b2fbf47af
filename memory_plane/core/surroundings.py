"""What was captured around a document says what it is about.

The answer to a question often stands in the line after the one that has the question's words. So each candidate
gets a share of the scores of the candidates near it in the same *stream*: documents of one creator, adapter and
audience, in the order in which they happened. All of a stream is visible to whoever sees one of it, so no hidden
document decides who is a neighbour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FALLOFF = (1.0, 0.67, 0.5, 0.33, 0.23, 0.17)
"""Share of a neighbour's score by its distance, in documents, relative to the recipe's weight."""
REACH = len(FALLOFF)
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
    """`scores` with each one's surroundings added. `places` is ordered within every stream."""
    result = dict(scores)
    if weight <= 0.0:
        return result
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
            result[place.key] += share * scores[earlier.key]
            result[earlier.key] += share * scores[place.key]
    return result
