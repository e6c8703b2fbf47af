"""How much weight a capture's origin gives it: a snapshot in [0, 1], taken once."""

from math import log

from memory_plane.contracts.enums import CreatedByKind, SourceChannel

_KIND = {
    CreatedByKind.HUMAN: 1.0,
    CreatedByKind.AGENT: 0.6,
    CreatedByKind.SYSTEM: 0.4,
    CreatedByKind.ADAPTER: 0.3,
}
_CHANNEL = {
    SourceChannel.CHANNEL: 1.0,
    SourceChannel.THREAD: 0.8,
    SourceChannel.CALL: 0.7,
    SourceChannel.NATIVE: 0.4,
    SourceChannel.RECORD: 0.3,
}
_ACTORS_FOR_FULL_WEIGHT = 8


def authority(
    created_by_kind: CreatedByKind,
    *,
    actor_count: int = 1,
    channel: SourceChannel = SourceChannel.NATIVE,
    has_social_signal: bool = False,
) -> float:
    """Who said it, how many took part, how public the place was, and whether others reacted."""
    actors = min(1.0, log(max(1, actor_count)) / log(_ACTORS_FOR_FULL_WEIGHT))
    score = 0.3 * _KIND[created_by_kind] + 0.3 * actors + 0.3 * _CHANNEL[channel] + 0.1 * has_social_signal
    return max(0.0, min(1.0, score))
