"""Waiting for what other processes and tasks do, with a deadline."""

import asyncio
from collections.abc import Awaitable, Callable


async def eventually(
    condition: Callable[[], Awaitable[bool]], *, seconds: float = 30.0, what: str = "the condition"
) -> None:
    """Return once the condition holds; fails the test when it does not in time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not await condition():
        assert asyncio.get_running_loop().time() < deadline, f"waited {seconds} s for {what}"
        await asyncio.sleep(0.02)
