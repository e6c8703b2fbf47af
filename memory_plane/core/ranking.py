"""From the channels' scores to one order of documents: fuse, surroundings, boosts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_plane.contracts.recipe import Recipe
from memory_plane.core.boosts import HIGHEST, LOWEST, BoostFacts, Boosts, boosts, normalized_in_batch


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """`relevance` is the active score on [0, 1] within the batch, `score` that times the boosts."""

    document_id: str
    relevance: float
    boosts: Boosts
    score: float


def boosted(
    active: Mapping[str, float],
    facts: Callable[[str], BoostFacts],
    recipe: Recipe,
    now: datetime,
    *,
    first: int | None = None,
) -> list[RankedDocument]:
    """Best first; equal scores by when it happened, latest first, then by id. With `first` only so many, or more: what
    no boost can lift among them is left out."""
    relevance = normalized_in_batch(active)
    reachable = 0.0
    if first is not None and len(relevance) > first:
        reachable = sorted(relevance.values(), reverse=True)[first - 1] * LOWEST / HIGHEST
    ranked = []
    happened: dict[str, float] = {}
    for document_id, value in relevance.items():
        if value < reachable:
            continue
        known = facts(document_id)
        happened[document_id] = known.occurred_at.timestamp()
        multipliers = boosts(
            known,
            now,
            authority_weight=recipe.authority_weight,
            half_life_days=recipe.recency_half_life_days,
        )
        ranked.append(RankedDocument(document_id, value, multipliers, value * multipliers.product))
    ranked.sort(key=lambda item: (-item.score, -happened[item.document_id], item.document_id))
    return ranked


def followed_by(head: Sequence[RankedDocument], tail: Sequence[RankedDocument]) -> list[RankedDocument]:
    """What a reranker has judged, then what lay beyond its reach, in its own order and below all of the head."""
    lowest = min((item.score for item in head), default=1.0)
    return [*head, *(replace(item, score=lowest * min(1.0, item.score)) for item in tail)]
