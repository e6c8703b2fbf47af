"""Mixed traffic at rates that rise until the service has more than it can do, and what becomes of it then.

    python -m bench.load [--seconds 10] [--rates 25 50 100 …]

Open loop: requests are begun at their time whether earlier ones were answered or not, as a crowd does. A whole stack,
durable, with an endpoint that answers at once; callers on the same machine. Ends with 1 where saturation is not met
with 503 or 429 and Retry-After, where it costs what could be answered, or where health is slow.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from bench.add import ROOT, Text, Texts, answers, process
from bench.load_report import write
from memory_plane.dev.ports import HOST, free_port
from memory_plane.dev.stack import Access, DevStack

RATES = (25, 50, 100, 150, 200, 300, 450, 700, 1_000)
DIMS = 384
DOCUMENTS = 600
MIX = {"search": 55, "add": 25, "list": 10, "get": 10}
"""Of a hundred requests."""
MOST_UNDER_WAY = 4_000
"""Beyond that a caller gives up before he has asked: this machine's sockets are not what is measured."""
TIMEOUT = 15.0
IDLE_SECONDS = 2.0
"""Connections that idled longer are not used again: the server may be closing them."""
TEXTS = 6_000
HEALTH_EVERY = 0.2


@dataclass
class Step:
    """What came of one rate. Latencies in seconds, of what was answered well, from the moment of wanting to ask."""

    rate: float
    seconds: float = 0.0
    offered: int = 0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    without_retry_after: int = 0
    health: list[float] = field(default_factory=list)
    health_failures: int = 0

    @property
    def answered(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")

    def health_percentile(self, share: float) -> float:
        ordered = sorted(self.health)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    retry_after: bool
    body: bytes


class Connections:
    """Kept open and used again. By hand: a library's pool looks through thousands of them at every request, and its
    own collapse would be taken for the service's."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._head = f"Host: {HOST}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def request(self, method: str, path: str, body: object = None) -> Reply:
        """Raises OSError or TimeoutError where no answer came."""
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await self._connection()
            try:
                content = b"" if body is None else json.dumps(body).encode()
                head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(content)}\r\n\r\n"
                writer.write(head.encode() + content)
                reply = await _reply(reader)
            except BaseException:
                writer.transport.abort()
                raise
        self._idle.append((time.monotonic(), reader, writer))
        return reply

    def close(self) -> None:
        for _, _, writer in self._idle:
            writer.close()

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            since, reader, writer = self._idle.pop()
            if time.monotonic() - since < IDLE_SECONDS and not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(HOST, self._port)


async def _reply(reader: asyncio.StreamReader) -> Reply:
    line = await reader.readline()
    if not line:
        raise ConnectionResetError
    length, retry_after = 0, False
    while (header := await reader.readline()) != b"\r\n":
        name, _, value = header.lower().partition(b":")
        if name == b"content-length":
            length = int(value)
        retry_after |= name == b"retry-after"
    return Reply(int(line.split()[1]), retry_after, await reader.readexactly(length))


class Crowd:
    """Those who ask: each picks what from the mix, and waits for his answer while the others go on asking."""

    def __init__(self, access: Access) -> None:
        self._base = f"/api/tenants/{access.tenant}/memory"
        self._port = int(access.api.rpartition(":")[2])
        self._connections = Connections(self._port, access.token)
        self._probe = Connections(self._port, access.token)
        self._documents: list[str] = []
        self._random = random.Random(11)
        self._texts: list[Text] = Texts().make(TEXTS)

    async def begin(self) -> None:
        """Documents to find and to read."""
        for first in range(0, DOCUMENTS, 100):
            items = [{"title": title, "text": text} for title, text in self._texts[first : first + 100]]
            reply = await self._connections.request("POST", f"{self._base}/add/batch", {"items": items})
            self._documents += [item["documentId"] for item in json.loads(reply.body)["items"]]

    async def step(self, rate: float, seconds: float) -> Step:
        """Ask at this rate for so long, and wait for what is still under way."""
        step = Step(rate)
        under_way: set[asyncio.Task[None]] = set()
        over = asyncio.Event()
        health = asyncio.create_task(self._watch_health(step, over))
        began = time.perf_counter()
        while (due := began + step.offered / rate) < began + seconds:
            if (early := due - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            step.offered += 1
            if len(under_way) >= MOST_UNDER_WAY:
                step.statuses["not asked"] += 1
                continue
            task = asyncio.create_task(self._ask(step, due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)
        # Until the last answer: what was still under way then was not answered in the step's own time.
        step.seconds = time.perf_counter() - began
        over.set()
        await health
        return step

    async def _ask(self, step: Step, due: float) -> None:
        try:
            reply = await self._request()
        except (OSError, TimeoutError) as failure:
            step.statuses[f"no answer ({type(failure).__name__})"] += 1
            return
        if reply.status == 200:
            step.statuses["200"] += 1
            step.latencies.append(time.perf_counter() - due)
            return
        step.statuses[f"{reply.status} {json.loads(reply.body).get('code')}"] += 1
        step.without_retry_after += reply.status in (429, 503) and not reply.retry_after

    async def _request(self) -> Reply:
        kind = self._random.choices(list(MIX), list(MIX.values()))[0]
        title, text = self._random.choice(self._texts)
        if kind == "search":
            return await self._connections.request("POST", f"{self._base}/search", {"query": title, "limit": 8})
        if kind == "add":
            return await self._connections.request("POST", f"{self._base}/add", {"title": title, "text": text})
        if kind == "list":
            return await self._connections.request("GET", f"{self._base}/list?limit=20")
        return await self._connections.request("GET", f"{self._base}/documents/{self._random.choice(self._documents)}")

    async def _watch_health(self, step: Step, over: asyncio.Event) -> None:
        """On connections of its own, as a probe has."""
        while not over.is_set():
            asked = time.perf_counter()
            try:
                well = (await self._probe.request("GET", "/healthz")).status == 200
            except (OSError, TimeoutError):
                well = False
            step.health.append(time.perf_counter() - asked)
            step.health_failures += not well
            try:
                await asyncio.wait_for(over.wait(), HEALTH_EVERY)
            except TimeoutError:
                continue

    def close(self) -> None:
        self._connections.close()
        self._probe.close()


@asynccontextmanager
async def service(folder: Path) -> AsyncIterator[Access]:
    port = free_port()
    async with process(folder / "endpoint.log", "-m", "bench.instant_endpoint", str(port), str(DIMS)):
        await answers(port, folder / "endpoint.log")
        environment = {"EMBED_BASE_URL": f"http://{HOST}:{port}", "EMBED_MODEL": "instant"}
        async with DevStack(folder / "stack", port=0, environment=clean(environment)) as stack:
            yield stack.access


def clean(environment: dict[str, str]) -> dict[str, str]:
    """Ours, without anything that configures the service, and with this."""
    ours = ("DATABASE_URL", "TEMPORAL_", "EMBED_", "RERANK_", "DISTILL_", "MEMORY_", "DB_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | environment


async def run(rates: list[float], seconds: float, out: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="memory-bench-load-") as folder:
        async with service(Path(folder)) as access:
            crowd = Crowd(access)
            await crowd.begin()
            await crowd.step(rates[0], seconds / 2)
            steps = []
            # The first rate again in the end: a service that has been flooded must be what it was.
            for rate in [*rates, rates[0]]:
                steps.append(await crowd.step(rate, seconds))
                print(f"{rate:7g}/s  {steps[-1].answered:7.1f} answered/s  {dict(steps[-1].statuses)}", flush=True)
            crowd.close()
    return write(steps, MIX, out, ROOT / "docs" / "benchmarks.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES))
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "load.md")
    given = parser.parse_args()
    sys.exit(0 if uvloop.run(run(given.rates, given.seconds, given.out)) else 1)
