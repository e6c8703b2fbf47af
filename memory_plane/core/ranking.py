"""From the channels' scores to one order of documents: fuse, surroundings, boosts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_plane.contracts.recipe import Recipe
from memory_plane.core.boosts import BoostFacts, Boosts, boosts, normalized_in_batch


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """`relevance` is the active score on [0, 1] within the batch, `score` that times the boosts."""

    document_id: str
    relevance: float
    boosts: Boosts
    score: float


def boosted(
    active: Mapping[str, float], facts: Mapping[str, BoostFacts], recipe: Recipe, now: datetime
) -> list[RankedDocument]:
    """Best first; equal scores by when it happened, latest first, then by id."""
    relevance = normalized_in_batch(active)
    ranked = []
    for document_id, value in relevance.items():
        multipliers = boosts(
            facts[document_id],
            now,
            authority_weight=recipe.authority_weight,
            half_life_days=recipe.recency_half_life_days,
        )
        ranked.append(RankedDocument(document_id, value, multipliers, value * multipliers.product))
    ranked.sort(key=lambda item: (-item.score, -facts[item.document_id].occurred_at.timestamp(), item.document_id))
    return ranked


def followed_by(head: Sequence[RankedDocument], tail: Sequence[RankedDocument]) -> list[RankedDocument]:
    """What a reranker has judged, then what lay beyond its reach, in its own order and below all of the head."""
    lowest = min((item.score for item in head), default=1.0)
    return [*head, *(replace(item, score=lowest * min(1.0, item.score)) for item in tail)]
