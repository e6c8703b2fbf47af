"""Keeping the parts up: one that dies is started again, one that keeps dying ends the stack."""

import asyncio
from collections import deque
from collections.abc import Callable

from memory_plane.dev.errors import StackError
from memory_plane.dev.parts import Part

_DEATHS = 5
_WITHIN_SECONDS = 120.0
_FIRST_PAUSE_SECONDS = 0.5


class Supervised:
    """One part under watch. Once stopped or killed through here it stays down until it is started again."""

    def __init__(
        self,
        name: str,
        part: Part,
        *,
        say: Callable[[str], None],
        give_up: Callable[[StackError], None],
    ) -> None:
        self.name = name
        self.part = part
        self._say = say
        self._give_up = give_up
        self._up = asyncio.Event()
        self._deaths: deque[float] = deque(maxlen=_DEATHS)
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it, wait until it is ready, and watch it from then on."""
        await self._launch()
        self._watch = asyncio.create_task(self._keep_up(), name=f"watch {self.name}")

    async def stop(self) -> None:
        await self._unwatch()
        await self.part.stop()

    async def kill(self) -> None:
        """SIGKILL, as a crash would, and leave it down."""
        await self._unwatch()
        await self.part.kill()

    async def ready(self) -> None:
        """Wait until it is up, after a death too."""
        await self._up.wait()

    async def _launch(self) -> None:
        await self.part.start()
        self._up.set()

    async def _unwatch(self) -> None:
        self._up.clear()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
            self._watch = None

    async def _keep_up(self) -> None:
        while True:
            code = await self.part.child.wait()
            self._up.clear()
            await self._revive(f"{self.name} ended unexpectedly ({_told(code)})")
            if not self._up.is_set():
                return

    async def _revive(self, trouble: str) -> None:
        """Start it again, each time after a longer pause; give the stack up when it keeps dying."""
        loop = asyncio.get_running_loop()
        while True:
            self._deaths.append(loop.time())
            recent = sum(at > loop.time() - _WITHIN_SECONDS for at in self._deaths)
            if recent == _DEATHS:
                self._give_up(StackError(f"{trouble}, for the {recent}th time; see {self.part.log}."))
                return
            pause = _FIRST_PAUSE_SECONDS * 2 ** (recent - 1)
            self._say(f"{trouble}; starting it again in {pause:g} s (log: {self.part.log})")
            await asyncio.sleep(pause)
            try:
                await self._launch()
            except StackError as failure:
                trouble = str(failure).rstrip(".")
                continue
            self._say(f"{self.name} is up again")
            return


def _told(code: int) -> str:
    return f"signal {code - 128}" if code > 128 else f"exit code {code}"
