"""One search under way: its clock, its budget, and what could not run."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from memory_plane.contracts.enums import Degraded


@dataclass
class SearchRun:
    """`deadline` is on the loop's clock. Degraded reasons keep the order in which they were met."""

    budget: float
    timings: dict[str, float] = field(default_factory=dict)
    _degraded: dict[Degraded, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began = asyncio.get_running_loop().time()

    @property
    def left(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self._began + self.budget - asyncio.get_running_loop().time())

    def share(self, part: float) -> float:
        """Seconds that an optional stage may take: so much of the whole, and no more than is left."""
        return min(self.left, self.budget * part)

    def degrade(self, *reasons: Degraded) -> None:
        self._degraded.update(dict.fromkeys(reasons))

    @property
    def degraded(self) -> list[str] | None:
        return [reason.value for reason in self._degraded] or None

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            yield
        finally:
            self.timings[stage] = self.timings.get(stage, 0.0) + loop.time() - began
