"""How often one caller may ask, and how many requests are answered at once: what is too much is refused at the door,
before it costs anything, with the time to come back.

Both count in this process alone: with several replicas a caller may ask each of them so often.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from memory_plane.contracts.errors import Throttled, Unavailable
from memory_plane.core.caller import Caller
from memory_plane.settings import Settings

MOST_CALLERS = 100_000
"""Callers that are remembered; one that is forgotten for those begins with a full bucket."""


@dataclass(slots=True)
class CallerLimit:
    """A bucket of tokens a caller: `burst` of them at most, refilled by `per_second`; a request takes one."""

    per_second: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[Caller, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, caller: Caller) -> None:
        """Raises Throttled, with the seconds until there is a token again."""
        now = self.clock()
        left, at = self._buckets.pop(caller, (float(self.burst), now))
        left = min(float(self.burst), left + (now - at) * self.per_second)
        allowed = left >= 1
        self._buckets[caller] = (left - allowed, now)
        if len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
        if not allowed:
            raise Throttled(
                f"You may ask {self.per_second:g} times a second, {self.burst} times at once; come back later.",
                retry_after=math.ceil((1 - left) / self.per_second),
            )


@dataclass(slots=True)
class Room:
    """Places for requests that are being answered at the same time; more would only wait for each other."""

    places: int
    taken: int = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """Raises Unavailable while all are taken."""
        if self.taken >= self.places:
            raise Unavailable(
                "The service is answering as many requests as it can; nothing was done. Try again.",
                code="overloaded",
                retry_after=1,
            )
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1


def caller_limit(settings: Settings) -> CallerLimit | None:
    """By the configuration; None where there is no limit."""
    per_second = settings.memory_requests_per_second
    if per_second is None:
        return None
    return CallerLimit(per_second, settings.memory_requests_burst or max(1, math.ceil(2 * per_second)))
