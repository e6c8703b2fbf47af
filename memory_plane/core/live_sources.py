"""Hits of live sources (a host's mail, tickets, …) merged with those of the memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

RELEVANCE_SHARE = 0.85
HALF_LIFE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class LiveHit:
    """What a live source has found. `score` is on the source's own scale, greater is better."""

    adapter: str
    external_ref: str
    title: str
    snippet: str
    score: float
    kind: str = "document"
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """One hit of a channel in common terms; `key` is its own within the channel."""

    key: str
    adapter: str
    external_ref: str
    score: float
    occurred_at: datetime | None


LOCAL = "local"


def merged(channels: Sequence[tuple[str, Sequence[Ranked]]], now: datetime) -> list[tuple[str, str, float]]:
    """(channel, key, score) of all hits, best first: relevance relative to its channel's best, and a little recency.

    The same adapter:external_ref from two channels is one hit: the memory's own, else the better one.
    """
    scored = [
        (_score(hit, best, now), channel, hit)
        for channel, hits in channels
        if hits
        for best in (max(hit.score for hit in hits),)
        for hit in hits
    ]
    scored.sort(key=lambda item: (-item[0], item[1] != LOCAL, item[2].key))
    local = {(hit.adapter, hit.external_ref) for _, channel, hit in scored if channel == LOCAL}
    seen: set[tuple[str, str]] = set()
    result: list[tuple[str, str, float]] = []
    for score, channel, hit in scored:
        name = (hit.adapter, hit.external_ref)
        if channel != LOCAL and (name in local or name in seen):
            continue
        seen.add(name)
        result.append((channel, hit.key, score))
    return result


def _score(hit: Ranked, best: float, now: datetime) -> float:
    relevance = hit.score / best if best > 0.0 else 1.0
    age = max(timedelta(0), now - hit.occurred_at) if hit.occurred_at is not None else None
    recency = 0.0 if age is None else 2.0 ** (-(age / HALF_LIFE))
    return RELEVANCE_SHARE * max(0.0, relevance) + (1.0 - RELEVANCE_SHARE) * recency
