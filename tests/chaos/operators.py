"""Those who operate meanwhile: one gives and takes a grant, one builds, promotes and demotes generations."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError

from memory_plane.cli import transform_control
from memory_plane.contracts.errors import Conflict, Unavailable
from memory_plane.contracts.transforms import CutoverInput, Cutting, TransformInput
from memory_plane.store.database import StatementFailed, connection
from memory_plane.store.grants import put_rules, revoke_rule
from tests.chaos.checker import Checker
from tests.chaos.faults import pause
from tests.chaos.history import History
from tests.chaos.world import READER, TENANTS, WRITERS, World

T = TypeVar("T")
PATIENCE = 240.0
"""Seconds in which an operator's step must come to its end, whatever fails meanwhile."""
OTHER_MODEL = {"embed": {"model": "other"}}


class Stuck(Exception):
    """A step did not come to its end in time; the message says which."""


async def insist(what: str, step: Callable[[], Awaitable[T]], seconds: float = PATIENCE) -> T:
    """The step, again and again while what it needs is away."""
    last: Exception | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await step()
                except (Unavailable, StatementFailed, RPCError, RuntimeError) as outage:
                    last = outage
                    await asyncio.sleep(0.3)
    except TimeoutError:
        raise Stuck(f"{what} did not end within {seconds:.0f} s ({last})") from None


@dataclass
class Granter:
    """Gives the reader the team's tag and takes it again."""

    world: World
    history: History
    clock: Callable[[], float]
    chance: random.Random
    changes: int = 0

    async def begin(self) -> None:
        for tenant in TENANTS:
            for principal in WRITERS:
                await self._change(tenant, principal, held=True)

    async def run(self, over: asyncio.Event, pace: float) -> None:
        held = dict.fromkeys(TENANTS, False)
        while not over.is_set():
            tenant = self.chance.choice(TENANTS)
            held[tenant] = not held[tenant]
            await self._change(tenant, READER, held=held[tenant])
            await pause(over, self.chance.uniform(0, 2 * pace))

    async def _change(self, tenant: str, principal: str, *, held: bool) -> None:
        rule = self.world.team_rules[tenant, principal]

        async def step() -> None:
            async with connection(self.world.engine.pool) as conn:
                if held:
                    await put_rules(conn, tenant, [rule])
                else:
                    await revoke_rule(conn, tenant, rule.id)

        begun = self.clock()
        # Noted before it is done too: what is read meanwhile may see the one or the other.
        self.history.grants.change(tenant, principal, begun, float("inf"), held)
        await insist("a change of grants", step)
        self.history.grants.changes[tenant, principal][-1] = (begun, self.clock(), held)
        self.changes += 1


@dataclass
class Transformer:
    """Builds another model's generation, promotes it, goes back, promotes it again, goes back."""

    world: World
    checker: Checker
    tenant: str
    clock: Callable[[], float]
    notes: list[str]
    cutovers: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    async def run(self, over: asyncio.Event, pace: float) -> None:
        try:
            while not over.is_set():
                run_id = await self._built(over)
                for kind in ("promote", "demote", "promote", "demote"):
                    if over.is_set():
                        return
                    await self._cut(kind, run_id)
                    await pause(over, pace)
        except Stuck as stuck:
            self.checker.violated("stuck", f"{self.tenant}: {stuck}")

    async def _built(self, over: asyncio.Event) -> str:
        transforms = self.world.engine.transforms
        config = await insist("a config", lambda: transforms.create_config(self.tenant, "other", OTHER_MODEL))
        run_id = await insist("a run", lambda: transforms.create_run(self.tenant, config.id, None))
        given = TransformInput(tenant_id=self.tenant, run_id=run_id)
        await insist("the start of a run", lambda: transform_control.start_run(self.world.client, given))

        async def completed() -> None:
            standing = await transforms.standing(self.tenant, run_id)
            if standing.status != "completed":
                raise Unavailable(f"the run is {standing.status}, {standing.pending} pending")

        await insist("a run", completed)
        return run_id

    async def _cut(self, kind: Cutting, run_id: str) -> None:
        given = CutoverInput(tenant_id=self.tenant, generation=run_id)

        async def step() -> str:
            handle = await transform_control.start_cutover(self.world.client, kind, given)
            try:
                return str((await handle.result()).live)
            except WorkflowFailureError as failure:
                raise transform_control.refusal(failure.cause) from None

        begun = self.clock()
        try:
            live = await insist(f"a {kind}", step)
            self.cutovers.append(kind)
            self.notes.append(f"{begun:.2f}–{self.clock():.2f}: {kind} in {self.tenant}, {live} is live")
        except Conflict as refused:
            self.refusals.append(f"{kind}: {refused.code}")
            self.notes.append(f"{begun:.2f}–{self.clock():.2f}: {kind} in {self.tenant} was refused, {refused.code}")
