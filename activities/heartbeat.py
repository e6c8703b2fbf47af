"""Heartbeats of long activities: cancellation arrives with them, and a lost worker is noticed by their absence."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from temporalio import activity

_UNBOUNDED_SECONDS = 10.0


@asynccontextmanager
async def heartbeating(begin: Any = None) -> AsyncIterator[Callable[[Any], None]]:
    """Beat three times a heartbeat timeout while the block runs, with the details last told: counts and ids.

    Yields the function that tells them. Each call inside is bounded by a timeout of its own (statement, HTTP), so
    beating while one is waited for hides no wedged call.
    """
    timeout = activity.info().heartbeat_timeout
    pause = timeout.total_seconds() / 3 if timeout else _UNBOUNDED_SECONDS
    latest = begin

    def tell(details: Any) -> None:
        nonlocal latest
        latest = details
        activity.heartbeat(details)

    async def beat() -> None:
        while True:
            activity.heartbeat(latest)
            await asyncio.sleep(pause)

    beating = asyncio.create_task(beat())
    try:
        yield tell
    finally:
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
