"""Waiting for what other processes do, with a deadline."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from memory_plane.dev.processes import start_time


async def until(condition: Callable[[], bool], *, seconds: float = 30.0, what: str = "the condition") -> None:
    """Return once the condition holds; fails the test when it does not in time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"waited {seconds} s for {what}"
        await asyncio.sleep(0.02)


async def until_gone(*pids: int) -> None:
    await until(lambda: not any(start_time(pid) for pid in pids), what=f"the end of {pids}")


async def until_logged(log: Path, text: str) -> None:
    await until(lambda: log.exists() and text in log.read_text(), what=f"{text!r} in {log}")
