"""One principal's way to the API: sends, measures, retries as a careful client does, and has each status checked."""

import asyncio
import json
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.chaos.checker import AFTER_RETRY, Checker

NO_ANSWER = 0
"""In the place of a status: the connection failed, or nothing came in time."""
TIMEOUT = 12.0


@dataclass(frozen=True, slots=True)
class Call:
    """One request that was sent. Times in seconds since the run began."""

    verb: str
    begun: float
    ended: float
    status: int


@dataclass(frozen=True, slots=True)
class Reply:
    call: Call
    text: str
    retry_after: str | None

    @property
    def status(self) -> int:
        return self.call.status

    @property
    def body(self) -> dict[str, Any]:
        found = json.loads(self.text)
        assert isinstance(found, dict)
        return found


@dataclass
class Line:
    """What all callers share: the client, the clock, the checker and the log of calls."""

    http: httpx.AsyncClient
    clock: Callable[[], float]
    checker: Checker
    over: asyncio.Event
    calls: list[Call] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What may explain a violation."""


@dataclass
class Caller:
    line: Line
    tenant: str
    principal: str
    token: str

    async def send(
        self,
        verb: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        expected: Collection[int] = (200,),
    ) -> Reply:
        """One request. A GET where there is no body."""
        headers = {"Authorization": f"Bearer {self.token}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        begun = self.line.clock()
        try:
            response = await self.line.http.request(
                "GET" if body is None else "POST",
                f"/api/tenants/{self.tenant}/memory/{path}",
                json=body,
                headers=headers,
            )
        except httpx.TransportError:
            return self._noted(Call(verb, begun, self.line.clock(), NO_ANSWER), "", None)
        call = Call(verb, begun, self.line.clock(), response.status_code)
        retry_after = response.headers.get("retry-after")
        code = "" if response.status_code == 200 else _code(response.text)
        if response.status_code >= 500 and response.status_code != 503:
            self.line.notes.append(f"{call.begun:.2f}–{call.ended:.2f}: {verb} was {response.status_code}")
        self.line.checker.answered(verb, response.status_code, expected, retry_after, code)
        return self._noted(call, response.text, retry_after)

    async def insist(
        self,
        verb: str,
        path: str,
        body: Mapping[str, Any],
        chance: random.Random,
        *,
        key: str | None = None,
        expected: Collection[int] = (200,),
        give_up: float = 0.0,
        sent: Callable[[], None] = lambda: None,
    ) -> Reply | None:
        """The same request until it is answered. None for one that is given up: with this chance, after a try of
        which nothing is known, or when the run is over and nothing answers any more."""
        after_end = 0
        while True:
            sent()
            reply = await self.send(verb, path, body, key=key, expected=expected)
            if reply.status not in (NO_ANSWER, *AFTER_RETRY):
                return reply
            if chance.random() < give_up:
                return None
            after_end += self.line.over.is_set()
            if after_end > 20:
                return None
            # The client's own pause, shorter than it was asked for, so that the load does not hide the fault.
            await asyncio.sleep(min(float(reply.retry_after or 0.3), 1.0) * chance.uniform(0.5, 1.0))

    def _noted(self, call: Call, text: str, retry_after: str | None) -> Reply:
        self.line.calls.append(call)
        return Reply(call, text, retry_after)


def _code(text: str) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        return "no problem document"
    return str(found.get("code")) if isinstance(found, dict) else "no problem document"
