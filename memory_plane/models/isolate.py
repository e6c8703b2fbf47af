"""Finding the text that spoils a batch, without failing its neighbours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory_plane.models.errors import BadReply, EndpointFault, EndpointTimeout, EndpointUnavailable

Vector: TypeAlias = NDArray[np.float32]

# A text no model chokes on: when even this one fails, the fault is the endpoint's and not a text's.
CONTROL_TEXT = "memory"

# One text that hangs the endpoint costs a timeout for each halving of 32; two of them cost about eleven.
MAX_TIMEOUTS = 12


@dataclass(frozen=True)
class TextFault:
    """Why one text has no vector although the endpoint works. `reason` is a sentence without content."""

    code: str
    reason: str


Outcome: TypeAlias = Vector | TextFault


@dataclass
class Isolation:
    """Embeds one batch by `request`, which raises an EndpointFault for the batch as a whole.

    When a batch fails in a way that one text may be to blame for, the control text decides: if the endpoint
    fails at that too, the fault is the endpoint's and is raised; if not, the batch is halved until the culprit
    stands alone.
    """

    request: Callable[[list[str]], Awaitable[list[Outcome]]]
    _timeouts: int = 0

    async def run(self, batch: list[str]) -> list[Outcome]:
        try:
            outcomes = await self.request(batch)
        except EndpointFault as fault:
            if not fault.isolable:
                raise
            self._count(fault)
            await self._control(fault)
            return await self._halve(batch, fault)
        faults = [outcome for outcome in outcomes if isinstance(outcome, TextFault)]
        if len(faults) == len(outcomes):
            await self._control(BadReply(faults[0].reason))
        return outcomes

    async def _control(self, fault: EndpointFault) -> None:
        """Raise unless the endpoint embeds the control text, which leaves the blame with the batch."""
        try:
            (outcome,) = await self.request([CONTROL_TEXT])
        except EndpointUnavailable:
            raise
        except EndpointFault:
            raise fault from None
        if isinstance(outcome, TextFault):
            raise fault from None

    async def _halve(self, batch: list[str], fault: EndpointFault) -> list[Outcome]:
        if len(batch) == 1:
            return [TextFault(fault.code, fault.detail)]
        middle = len(batch) // 2
        outcomes: list[Outcome] = []
        for half in (batch[:middle], batch[middle:]):
            try:
                outcomes.extend(await self.request(half))
            except EndpointFault as inner:
                if not inner.isolable:
                    raise
                self._count(inner)
                outcomes.extend(await self._halve(half, inner))
        return outcomes

    def _count(self, fault: EndpointFault) -> None:
        self._timeouts += isinstance(fault, EndpointTimeout)
        if self._timeouts > MAX_TIMEOUTS:
            raise fault
