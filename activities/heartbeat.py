"""Heartbeats of long activities: cancellation arrives with them, and a lost worker is noticed by their absence."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

HAND_OVER = timedelta(seconds=1)
_UNBOUNDED_SECONDS = 10.0


@asynccontextmanager
async def heartbeating(begin: Any = None) -> AsyncIterator[Callable[[Any], None]]:
    """Beat three times a heartbeat timeout while the block runs, with the details last told: counts and ids.

    Yields the function that tells them, which ends the activity when its worker is stopping: what is told is done, and
    another worker goes on from there. Each call inside is bounded by a timeout of its own (statement, HTTP), so beating
    while one is waited for hides no wedged call.
    """
    timeout = activity.info().heartbeat_timeout
    pause = timeout.total_seconds() / 3 if timeout else _UNBOUNDED_SECONDS
    latest = begin

    def tell(details: Any) -> None:
        nonlocal latest
        latest = details
        activity.heartbeat(details)
        if activity.is_worker_shutdown():
            raise ApplicationError(
                "The worker is stopping; another one goes on.",
                type="worker_stopping",
                next_retry_delay=HAND_OVER,
                category=ApplicationErrorCategory.BENIGN,
            )

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
