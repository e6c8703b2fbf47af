"""Bounded multipliers on relevance: authority, time, corroboration. None lifts a weak match over a strong one alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory_plane.contracts.enums import TemporalClass

LOWEST = 0.7
HIGHEST = 1.3
LOOKAHEAD = timedelta(days=7)
"""A deadline begins to rise so long before its end."""
SATURATION = math.log(5.0)
"""Four supports (or contradictions) count in full."""


@dataclass(frozen=True, slots=True)
class BoostFacts:
    """What of a version the multipliers look at; `supports` and `contradicts` count what the caller may see."""

    authority: float
    temporal_class: TemporalClass
    occurred_at: datetime
    valid_until: datetime | None
    supports: int = 0
    contradicts: int = 0


@dataclass(frozen=True, slots=True)
class Boosts:
    authority: float
    temporal: float
    corroboration: float

    @property
    def product(self) -> float:
        return clamped(self.authority * self.temporal * self.corroboration)


def clamped(multiplier: float) -> float:
    return min(HIGHEST, max(LOWEST, multiplier))


def authority_boost(authority: float, weight: float) -> float:
    """1 at authority 0.5; `weight` 0 is neutral."""
    return clamped(1.0 + 1.2 * weight * (authority - 0.5))


def temporal_boost(facts: BoostFacts, now: datetime, half_life_days: float) -> float:
    match facts.temporal_class:
        case TemporalClass.EVENT:
            age = max(0.0, (now - facts.occurred_at) / timedelta(days=1))
            return clamped(0.7 + 0.6 * 2.0 ** (-age / half_life_days))
        case TemporalClass.DEADLINE:
            return _deadline(facts.valid_until, now)
        case _:
            return 1.0


def _deadline(until: datetime | None, now: datetime) -> float:
    if until is None:
        return 1.0
    left = until - now
    if left < timedelta(0):
        return LOWEST
    if left >= LOOKAHEAD:
        return 1.0
    return HIGHEST - 0.3 * (left / LOOKAHEAD)


def corroboration_boost(supports: int, contradicts: int) -> float:
    if supports <= 0 and contradicts <= 0:
        return 1.0
    for_it, against = (min(1.0, math.log1p(max(0, count)) / SATURATION) for count in (supports, contradicts))
    return clamped(0.7 + 0.6 * min(1.0, max(0.0, 0.5 + 0.5 * for_it - 0.5 * against)))


def boosts(facts: BoostFacts, now: datetime, *, authority_weight: float, half_life_days: float) -> Boosts:
    return Boosts(
        authority=authority_boost(facts.authority, authority_weight),
        temporal=temporal_boost(facts, now, half_life_days),
        corroboration=corroboration_boost(facts.supports, facts.contradicts),
    )


def normalized_in_batch(scores: Mapping[str, float]) -> dict[str, float]:
    """On [0, 1] within the batch; all equal → all 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high <= low:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - low) / (high - low) for key, score in scores.items()}
