"""A worker that dies at each activity: before it has done anything, and after it has done all and told nobody."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor


@dataclass
class Killer(Interceptor):
    """The first attempt of each activity is lost before it, the next one after it; then it is let through.

    What a killed process leaves is what an attempt leaves whose outcome never arrives.
    """

    killed: Counter[str] = field(default_factory=Counter)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Killing(next, self)


class _Killing(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, killer: Killer) -> None:
        super().__init__(next)
        self._killer = killer

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if info.attempt == 1:
            self._die(info.activity_type)
        result = await super().execute_activity(input)
        if info.attempt == 2:
            self._die(info.activity_type)
        return result

    def _die(self, name: str) -> None:
        self._killer.killed[name] += 1
        raise ApplicationError("the worker was killed", type="killed", next_retry_delay=timedelta(milliseconds=20))


class Gate:
    """Lets a test act at the moment at which an activity begins: `reached` it, then `open` it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()


@dataclass
class Doorkeeper(Interceptor):
    """Keeps the first attempt of one activity waiting at its gate."""

    name: str
    gate: Gate = field(default_factory=Gate)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Kept(next, self)


class _Kept(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, keeper: Doorkeeper) -> None:
        super().__init__(next)
        self._keeper = keeper

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if activity.info().activity_type == self._keeper.name and not self._keeper.gate.reached.is_set():
            self._keeper.gate.reached.set()
            await self._keeper.gate.open.wait()
        return await super().execute_activity(input)
