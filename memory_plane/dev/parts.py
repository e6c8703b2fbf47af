"""The parts of the stack that are programs of ours: the model endpoint, the worker and the API."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from memory_plane.dev.child import Child, Command
from memory_plane.dev.errors import StackError
from memory_plane.dev.ports import HOST

_POLL_SECONDS = 0.05
_ANSWER_SECONDS = 5.0

Probe = Callable[[Child], Awaitable[bool]]
"""Whether the child is ready to serve."""


class Part(Protocol):
    """Something that can be started, stopped and killed, again and again, on the same state."""

    log: Path

    @property
    def child(self) -> Child: ...

    async def start(self) -> None:
        """Start it and wait until it serves; raises StackError."""

    async def stop(self) -> None: ...

    async def kill(self) -> None:
        """SIGKILL."""


class Program:
    """One of our programs. `title` begins sentences; `patience` is in seconds, from start to ready.

    `speaks` says that the program ends with a sentence of its own when it cannot start.
    """

    def __init__(
        self, title: str, command: Command, ready: Probe, *, patience: float = 60.0, speaks: bool = False
    ) -> None:
        self.title = title
        self.log = command.log
        self._command = command
        self._ready = ready
        self._patience = patience
        self._speaks = speaks
        self._child: Child | None = None

    @property
    def child(self) -> Child:
        if self._child is None:
            raise StackError(f"{self.title} has not been started.")
        return self._child

    async def start(self) -> None:
        self._child = await Child.start(self._command)
        try:
            await asyncio.wait_for(self._until_ready(self._child), self._patience)
        except StackError:
            await self._child.stop()
            raise
        except TimeoutError:
            await self._child.stop()
            raise StackError(f"{self.title} was not ready within {self._patience:.0f} s; see {self.log}.") from None

    async def stop(self) -> None:
        if self._child is not None:
            await self._child.stop()

    async def kill(self) -> None:
        await self.child.kill()

    async def _until_ready(self, child: Child) -> None:
        while not await self._ready(child):
            if child.exit_code is not None:
                raise StackError(self._last_words() or self._ended(child.exit_code))
            await asyncio.sleep(_POLL_SECONDS)

    def _ended(self, code: int) -> str:
        return f"{self.title} ended at start with exit code {code}; see {self.log}."

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self._speaks else []
        return lines[-1].strip() if lines else ""


def answers(port: int, path: str) -> Probe:
    """Ready when the path answers 200."""

    async def probe(_: Child) -> bool:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await _status(port, path) == 200
        except (OSError, TimeoutError):
            return False

    return probe


async def _status(port: int, path: str) -> int | None:
    """The status of a GET. By hand: an HTTP library would be a third of the time that the stack takes to load."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
        words = (await reader.readline()).split()
        return int(words[1]) if len(words) > 1 else None
    finally:
        writer.close()
