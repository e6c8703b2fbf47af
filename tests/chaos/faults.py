"""The faults, each begun, held for some seconds and mended; and the one who injects them, one after the other."""

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from memory_plane.dev.errors import StackError
from memory_plane.dev.postgres import PostgresServer
from memory_plane.dev.temporal import TemporalServer
from tests.chaos.world import World
from tests.fakes.faults import BadNumber, Delay, HtmlPage, Status, WrongCount
from tests.fakes.faults import Fault as Answer

Fault = Callable[[World], AbstractAsyncContextManager[None]]
PROGRAMS = ("api", "worker")
SERVERS = ("postgres", "temporal")
PART_PATIENCE = 90.0
"""Seconds in which a part must come up again once what it needs is there."""


@dataclass(frozen=True, slots=True)
class Window:
    """One fault that was on, `begun` to `mended`."""

    name: str
    begun: float
    mended: float


# Processes


def killed(part: str) -> Fault:
    @asynccontextmanager
    async def fault(world: World) -> AsyncIterator[None]:
        if part in SERVERS:
            await _server(world, part).kill()
        else:
            await world.stack.kill(part)
        try:
            yield
        finally:
            await _up(world, part)

    return fault


def restarted(part: str) -> Fault:
    @asynccontextmanager
    async def fault(world: World) -> AsyncIterator[None]:
        if part in SERVERS:
            await _server(world, part).stop()
            await _up(world, part)
        else:
            await world.stack.restart(part)
        yield

    return fault


def stopped(part: str) -> Fault:
    """SIGSTOP to the part and all its children, SIGCONT at the end."""

    @asynccontextmanager
    async def fault(world: World) -> AsyncIterator[None]:
        pids = tree(world.pid(part))
        _signal(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(reversed(pids), signal.SIGCONT)

    return fault


@asynccontextmanager
async def backends_ended(world: World) -> AsyncIterator[None]:
    """Every session of the database is terminated by its administrator."""
    conn = await asyncpg.connect(world.postgres.dsn())
    try:
        await conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", "memory-plane"
        )
    finally:
        await conn.close()
    yield


# Wires


def wire(name: str, do: str) -> Fault:
    """`cut`, `refuse` or `stall` the proxy before this server."""

    @asynccontextmanager
    async def fault(world: World) -> AsyncIterator[None]:
        proxy = world.wires[name]
        getattr(proxy, do)()
        try:
            yield
        finally:
            proxy.heal()

    return fault


# The endpoint


def endpoint_answers(answer: Answer) -> Fault:
    @asynccontextmanager
    async def fault(world: World) -> AsyncIterator[None]:
        world.endpoint.fail(answer)
        try:
            yield
        finally:
            world.endpoint.heal()

    return fault


@asynccontextmanager
async def endpoint_down(world: World) -> AsyncIterator[None]:
    await world.endpoint.stop()
    world.wires["endpoint"].cut()
    try:
        yield
    finally:
        await world.endpoint.start(world.endpoint.port)


@asynccontextmanager
async def endpoint_hangs(world: World) -> AsyncIterator[None]:
    world.endpoint.hold()
    try:
        yield
    finally:
        world.endpoint.heal()


# The disk


@asynccontextmanager
async def disk_full(world: World) -> AsyncIterator[None]:
    """Not a byte is left where PostgreSQL and Temporal write; then there is room again."""
    assert world.disk is not None
    filler = world.disk / "filler"
    await asyncio.to_thread(_fill, filler)
    try:
        yield
    finally:
        filler.unlink()
        for part in SERVERS:
            await _up(world, part)


def _fill(filler: Path) -> None:
    piece = b"\0" * 1_048_576
    with filler.open("wb", buffering=0) as file:
        while piece:
            try:
                if file.write(piece) < len(piece):
                    piece = piece[: len(piece) // 2]
            except OSError:
                piece = piece[: len(piece) // 2]


CATALOGUE: Mapping[str, Fault] = {
    **{f"kill -9 {part}": killed(part) for part in (*PROGRAMS, *SERVERS)},
    **{f"stop and continue {part}": stopped(part) for part in (*PROGRAMS, *SERVERS)},
    **{f"restart {part}": restarted(part) for part in (*PROGRAMS, *SERVERS)},
    "end every database session": backends_ended,
    **{
        f"{do} the wire to {name}": wire(name, do)
        for name in ("postgres", "temporal", "endpoint")
        for do in ("cut", "refuse", "stall")
    },
    "endpoint down": endpoint_down,
    "endpoint hangs": endpoint_hangs,
    "endpoint slow by 3 s": endpoint_answers(Delay(3.0)),
    "endpoint 429 storm": endpoint_answers(Status(429, retry_after="2")),
    "endpoint 500": endpoint_answers(Status(500)),
    "endpoint NaN": endpoint_answers(BadNumber("nan")),
    "endpoint one vector short": endpoint_answers(WrongCount(-1)),
    "endpoint HTML": endpoint_answers(HtmlPage()),
}
DISK_FULL = "disk full"
OF_THE_ENDPOINT = [name for name in CATALOGUE if name.startswith("endpoint") or name.endswith("wire to endpoint")]


@dataclass
class Injector:
    """Goes through the catalogue in a random order, again and again; sometimes two faults at once."""

    world: World
    chance: random.Random
    clock: Callable[[], float]
    say: Callable[[str], None] = lambda _: None
    windows: list[Window] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    async def run(self, over: asyncio.Event, *, longest: float, calm: float, only: Collection[str] = ()) -> None:
        """Until `over`; each fault is held up to `longest` seconds, with up to twice `calm` seconds after it."""
        catalogue = dict(CATALOGUE)
        if self.world.disk is not None:
            catalogue[DISK_FULL] = disk_full
        if only:
            catalogue = {name: catalogue[name] for name in only}
        waiting: list[str] = []
        while not over.is_set():
            if not waiting:
                waiting = self.chance.sample(sorted(catalogue), len(catalogue))
            names = [waiting.pop()]
            if not only and names[0] not in OF_THE_ENDPOINT and self.chance.random() < 0.25:
                names.append(self.chance.choice(OF_THE_ENDPOINT))
            await self.inject({name: catalogue[name] for name in names}, self.chance.uniform(0.3, 1) * longest, over)
            await pause(over, self.chance.uniform(0.5, 2) * calm)

    async def inject(self, faults: Mapping[str, Fault], seconds: float, over: asyncio.Event) -> None:
        begun = self.clock()
        self.say(f"{begun:8.1f}  {' + '.join(faults)} for {seconds:.1f} s")
        open_faults = [fault(self.world) for fault in faults.values()]
        try:
            for each in open_faults:
                await each.__aenter__()
            await pause(over, seconds)
        finally:
            for each in reversed(open_faults):
                await self._mend(each)
            self.windows += [Window(name, begun, self.clock()) for name in faults]

    async def _mend(self, fault: AbstractAsyncContextManager[None]) -> None:
        try:
            await fault.__aexit__(None, None, None)
        except StackError as failure:
            self.failures.append(str(failure))


async def pause(over: asyncio.Event, seconds: float) -> None:
    """So long, or until it is over: the rate of what goes on, not a wait for anything."""
    try:
        await asyncio.wait_for(over.wait(), seconds)
    except TimeoutError:
        return


def tree(pid: int) -> list[int]:
    """The process and all that came of it, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _server(world: World, part: str) -> PostgresServer | TemporalServer:
    return world.postgres if part == "postgres" else world.temporal


async def _up(world: World, part: str) -> None:
    """Start it where it is not running, and again while it ends at once for want of what comes back only now."""
    if part in PROGRAMS:
        await world.stack.restart(part)
        return
    server = _server(world, part)
    deadline = time.monotonic() + PART_PATIENCE
    while server.child.exit_code is not None:
        try:
            await server.start()
        except StackError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.5)
