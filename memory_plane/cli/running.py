"""How a command runs a coroutine and how it ends: typed refusals become one sentence and an exit code."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from memory_plane.cli.output import fail
from memory_plane.contracts.errors import PlaneError

if TYPE_CHECKING:
    from memory_plane.plane.engine import Engine

T = TypeVar("T")

RUNTIME_DRAIN = 0.1
"""Seconds the loop stays up so that Temporal's native runtime ends before the process (temporalio/sdk-python#300)."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run one command's coroutine to its end."""

    async def drained() -> T:
        try:
            return await work
        finally:
            await asyncio.sleep(RUNTIME_DRAIN)

    try:
        return asyncio.run(drained())
    except PlaneError as refusal:
        fail(refusal.detail)


def load_settings() -> Any:
    """The service's configuration, or one line a problem and exit code 1."""
    try:
        from memory_plane.settings import Settings, SettingsInvalid
    except ModuleNotFoundError:
        fail("This command needs the service's packages: pip install 'memory-plane[service]'.")
    try:
        return Settings.load()
    except SettingsInvalid as problems:
        fail(f"The configuration cannot be used:\n{problems}")


def on_engine(work: "Callable[[Engine], Awaitable[T]]") -> T:
    """Run `work` on the database and the endpoints of the configuration."""
    settings = load_settings()

    from memory_plane.plane.engine import Engine

    async def within() -> T:
        async with Engine.open(settings) as engine:
            return await work(engine)

    return run(within())
