"""One run: a whole stack, a mixed load, faults, and then peace and the reckoning."""

import asyncio
import os
import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from tests.chaos.caller import TIMEOUT, Caller, Line
from tests.chaos.checker import Checker, check_end, check_follower
from tests.chaos.end import at_rest, end_state
from tests.chaos.faults import Injector, pause
from tests.chaos.history import SEES_ALL, History
from tests.chaos.operators import Granter, Transformer
from tests.chaos.readers import FeedReader, Follower, Reader
from tests.chaos.report import Outcome
from tests.chaos.world import READER, TENANTS, WRITERS, World, opened
from tests.chaos.writers import Writer

READ_AT_END = 1_500
"""Documents whose text is read through the API in the end, the newest first."""
FOLLOWING_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """`seconds` of load with faults of up to `longest` seconds and about `calm` seconds between them; `pace`: seconds
    between two calls of one writer. `patience`: until everything must have come to rest."""

    seed: int
    seconds: float
    longest: float = 6.0
    calm: float = 4.0
    pace: float = 0.35
    patience: float = 300.0
    transforms: bool = True
    small_disk: bool = True
    only: tuple[str, ...] = ()
    """Names of faults; none are all."""


async def run(plan: Plan, folder: Path, say: Callable[[str], None] = lambda _: None) -> Outcome:
    async with opened(folder, small_disk=plan.small_disk) as world:
        return await _Run(plan, world, say).run()


class _Run:
    def __init__(self, plan: Plan, world: World, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._world = world
        self._say = say
        self._began = time.monotonic()
        self._over = asyncio.Event()
        self._history = History()
        self._checker = Checker(self._history)
        self._chance = random.Random(plan.seed)
        self._health: list[float] = []

    def _clock(self) -> float:
        return time.monotonic() - self._began

    def _dice(self) -> random.Random:
        """One for each who throws them, so that one's turns do not change another's."""
        return random.Random(self._chance.random())

    async def run(self) -> Outcome:
        world, plan = self._world, self._plan
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=50)
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(
                httpx.AsyncClient(base_url=world.api, timeout=httpx.Timeout(TIMEOUT, connect=3.0), limits=limits)
            )
            line = Line(http, self._clock, self._checker, self._over)
            callers = {who: Caller(line, *who, token) for who, token in world.tokens.items()}
            writers = [Writer(callers[t, p], self._history, self._dice()) for t in TENANTS for p in WRITERS]
            followers = [Follower(callers[tenant, SEES_ALL]) for tenant in TENANTS]
            injector = Injector(world, self._dice(), self._clock, self._say)
            granter = Granter(world, self._history, self._clock, self._dice())
            transformers = [
                Transformer(world, self._checker, tenant, self._clock, line.notes)
                for tenant in TENANTS[: 2 * plan.transforms]
            ]
            await granter.begin()
            gave_up = asyncio.create_task(world.stack.failed())
            async with asyncio.TaskGroup() as group:
                for writer in writers:
                    group.create_task(writer.run(plan.pace))
                for who, caller in callers.items():
                    if who[1] != SEES_ALL or who[0] == TENANTS[0]:
                        group.create_task(Reader(caller, self._history, self._dice()).run(plan.pace))
                for follower in followers:
                    group.create_task(follower.run(0.5))
                for tenant in TENANTS:
                    group.create_task(FeedReader(callers[tenant, READER]).run(1.0))
                group.create_task(granter.run(self._over, 2.0))
                for transformer in transformers:
                    group.create_task(transformer.run(self._over, 8.0))
                group.create_task(self._watch_health(http))
                group.create_task(self._end_after(injector))
            seconds = self._clock()
            self._say(f"{seconds:8.1f}  the load is over; waiting for everything to come to rest")
            rest = await at_rest(world.engine.pool, plan.patience)
            await self._reckon(followers, callers)
            if gave_up.done():
                self._checker.violated("stuck", f"the stack gave up: {gave_up.result()}")
            gave_up.cancel()
        for death in world.deaths:
            self._checker.violated("stuck", f"the stack's watch said: {death}")
        for failure in injector.failures:
            self._checker.violated("stuck", f"a part did not come up again: {failure}")
        cutovers = [each for transformer in transformers for each in transformer.cutovers]
        return Outcome(
            seed=plan.seed,
            seconds=seconds,
            made=_made(),
            checker=self._checker,
            calls=line.calls,
            windows=injector.windows,
            rest_seconds=rest,
            no_disk=world.no_disk,
            counts={
                "changes of grants": granter.changes,
                "promotes": cutovers.count("promote"),
                "demotes": cutovers.count("demote"),
                "cutovers refused with a reason": sum(len(each.refusals) for each in transformers),
                "events followed": sum(len(each.seen) for each in followers),
            },
            health=self._health,
            notes=sorted(line.notes, key=lambda note: float(note.partition("–")[0].partition(":")[0])),
            unexpected=_unexpected(world),
        )

    async def _end_after(self, injector: Injector) -> None:
        plan = self._plan
        injecting = asyncio.Event()
        faults = asyncio.create_task(injector.run(injecting, longest=plan.longest, calm=plan.calm, only=plan.only))
        await asyncio.wait([faults], timeout=plan.seconds)
        injecting.set()
        await faults
        # With everything mended the load goes on for a moment: what was held up is answered.
        await pause(injecting, 0)
        self._over.set()

    async def _watch_health(self, http: httpx.AsyncClient) -> None:
        while not self._over.is_set():
            begun = self._clock()
            try:
                response = await http.get("/healthz")
            except httpx.TransportError:
                response = None
            if response is not None and response.status_code == 200:
                self._health.append(self._clock() - begun)
            await pause(self._over, 0.5)

    async def _reckon(self, followers: list[Follower], callers: dict[tuple[str, str], Caller]) -> None:
        for follower in followers:
            try:
                await follower.catch_up(FOLLOWING_WITHIN)
            except TimeoutError:
                self._checker.violated("feed", f"the mirror of {follower.caller.tenant} did not come to the end")
        end = await end_state(self._world.engine.pool)
        check_end(self._checker, end)
        for follower in followers:
            tenant = follower.caller.tenant
            check_follower(self._checker, f"the mirror of {tenant}", follower.seen, end.events.get(tenant, ()))
        for document in [each for each in self._history if each.document_id is not None][-READ_AT_END:]:
            reader = Reader(callers[document.tenant, document.owner], self._history, self._chance)
            await reader.get(document)


def _unexpected(world: World) -> list[str]:
    """What API and worker said of what they had not foreseen: types and places, never content."""
    lines = []
    for part in ("api", "worker"):
        told = world.stack.log(part).read_text(errors="replace").splitlines()
        lines += [f"{part}: {line}" for line in told if "unexpected" in line]
    return lines


def _made() -> str:
    return f"Made {datetime.now(UTC):%d %B %Y} on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
