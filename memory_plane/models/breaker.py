"""A circuit breaker: after a few failures in a row an endpoint is left alone for a while.

Written here because the libraries that do this are stale or count by exception class alone; ours honours
Retry-After and lets one call at a time find out whether the endpoint is back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from memory_plane.models.errors import CircuitOpen, EndpointFault
from memory_plane.telemetry import metrics

State = Literal["closed", "open", "half_open"]


class Breaker:
    """Guards the calls to one endpoint.

    `threshold` failures in a row open it, or one failure that names a Retry-After. It stays open for `cool_down`
    seconds, twice as long after every failed probe up to `max_cool_down`, and at least as long as Retry-After
    says. Then one call is let through as a probe; its outcome closes or opens the circuit. Not thread-safe: it
    belongs to one event loop.
    """

    def __init__(
        self,
        name: str,
        *,
        threshold: int = 3,
        cool_down: float = 1.0,
        max_cool_down: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._threshold = threshold
        self._cool_down = cool_down
        self._max_cool_down = max_cool_down
        self._clock = clock
        self._failures = 0
        self._openings = 0
        self._opened_until: float | None = None
        self._probing = False
        metrics.watch_breaker(self)

    @property
    def state(self) -> State:
        if self._opened_until is None:
            return "closed"
        return "half_open" if self._clock() >= self._opened_until else "open"

    @property
    def retry_in(self) -> float:
        """Seconds until a call may be let through; 0 when one may now."""
        return 0.0 if self._opened_until is None else max(0.0, self._opened_until - self._clock())

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Run one call to the endpoint. Raises CircuitOpen at once, without a call, while open.

        An EndpointFault that leaves the block counts as a failure; whatever else leaves it (a cancellation) is no
        verdict on the endpoint.
        """
        if self._opened_until is None:
            with self._verdict():
                yield
            return
        if self._probing or self._clock() < self._opened_until:
            raise CircuitOpen(
                f"The model endpoint at {self._name} failed lately and is left alone for a moment.",
                retry_after=max(self.retry_in, self._cool_down if self._probing else 0.0),
            )
        self._probing = True
        try:
            with self._verdict():
                yield
        finally:
            self._probing = False

    @contextmanager
    def _verdict(self) -> Iterator[None]:
        try:
            yield
        except CircuitOpen:
            # Another breaker's refusal: the endpoint was not asked, and nothing was learnt.
            raise
        except EndpointFault as fault:
            self._failed(fault.retry_after)
            raise
        self._failures = self._openings = 0
        self._opened_until = None

    def _failed(self, retry_after: float | None) -> None:
        self._failures += 1
        was_open = self._opened_until is not None
        if not was_open and self._failures < self._threshold and not retry_after:
            return
        # The exponent is bounded because an outage is not: 2.0**1024 is no float any more.
        pause = min(self._cool_down * 2.0 ** min(self._openings, 64), self._max_cool_down)
        until = self._clock() + max(pause, retry_after or 0.0)
        if was_open and not self._probing:
            # A call that began before the circuit opened adds nothing but its Retry-After.
            self._opened_until = max(self._opened_until or 0.0, until if retry_after else 0.0)
            return
        self._openings += 1
        metrics.BREAKER_OPENED.inc()
        self._opened_until = until
