"""Mixed traffic at rates that rise until the service has more than it can do, and what becomes of it then.

    python -m bench.load [--seconds 10] [--rates 25 50 100 …]

Open loop: requests are begun at their time whether earlier ones were answered or not, as a crowd does. A whole stack,
durable, with an endpoint that answers at once; callers on the same machine. Ends with 1 where saturation is not met
with 503 or 429 and Retry-After, where it costs what could be answered, or where health is slow.
"""

import argparse
import asyncio
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

import httpx
import uvloop

from bench.add import ROOT, Texts, answers, process
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
NO_ANSWER = 0
HEALTH_EVERY = 0.2


@dataclass
class Step:
    """What came of one rate. Latencies in seconds, of what was answered well, from the moment of wanting to ask."""

    rate: float
    seconds: float = 0.0
    offered: int = 0
    latencies: list[float] = field(default_factory=list)
    refusal_latencies: list[float] = field(default_factory=list)
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


class Crowd:
    """Those who ask: each picks what from the mix, and waits for his answer while the others go on asking."""

    def __init__(self, access: Access, http: httpx.AsyncClient, documents: list[str]) -> None:
        self._base = f"/api/tenants/{access.tenant}/memory"
        self._http = http
        self._documents = documents
        self._random = random.Random(11)
        self._texts = iter(Texts().make(60_000))

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
        kind = self._random.choices(list(MIX), list(MIX.values()))[0]
        try:
            response = await self._request(kind)
        except httpx.TransportError as failure:
            step.statuses[f"no answer ({type(failure).__name__})"] += 1
            return
        taken = time.perf_counter() - due
        if response.status_code == 200:
            step.statuses["200"] += 1
            step.latencies.append(taken)
            return
        step.statuses[f"{response.status_code} {response.json().get('code')}"] += 1
        step.refusal_latencies.append(taken)
        if response.status_code in (429, 503) and "retry-after" not in response.headers:
            step.without_retry_after += 1

    async def _request(self, kind: str) -> httpx.Response:
        title, text = next(self._texts)
        if kind == "search":
            return await self._http.post(f"{self._base}/search", json={"query": title, "limit": 8})
        if kind == "add":
            return await self._http.post(f"{self._base}/add", json={"title": title, "text": text})
        if kind == "list":
            return await self._http.get(f"{self._base}/list?limit=20")
        return await self._http.get(f"{self._base}/documents/{self._random.choice(self._documents)}")

    async def _watch_health(self, step: Step, over: asyncio.Event) -> None:
        """On a connection of its own, as a probe has."""
        async with httpx.AsyncClient(base_url=self._http.base_url, timeout=5.0) as probe:
            while not over.is_set():
                asked = time.perf_counter()
                try:
                    well = (await probe.get("/healthz")).status_code == 200
                except httpx.TransportError:
                    well = False
                step.health.append(time.perf_counter() - asked)
                step.health_failures += not well
                try:
                    await asyncio.wait_for(over.wait(), HEALTH_EVERY)
                except TimeoutError:
                    continue


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


async def seeded(http: httpx.AsyncClient, access: Access) -> list[str]:
    made: list[str] = []
    texts = Texts().make(DOCUMENTS)
    for first in range(0, DOCUMENTS, 100):
        items = [{"title": title, "text": text} for title, text in texts[first : first + 100]]
        response = await http.post(f"/api/tenants/{access.tenant}/memory/add/batch", json={"items": items})
        made += [item["documentId"] for item in response.json()["items"]]
    return made


async def run(rates: list[float], seconds: float, out: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="memory-bench-load-") as folder:
        async with service(Path(folder)) as access:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=500)
            async with httpx.AsyncClient(
                base_url=access.api,
                headers={"Authorization": f"Bearer {access.token}"},
                timeout=httpx.Timeout(TIMEOUT, connect=TIMEOUT),
                limits=limits,
            ) as http:
                crowd = Crowd(access, http, await seeded(http, access))
                await crowd.step(rates[0], seconds / 2)
                steps = []
                # The first rate again in the end: a service that has been flooded must be what it was.
                for rate in [*rates, rates[0]]:
                    steps.append(await crowd.step(rate, seconds))
                    print(f"{rate:7g}/s  {steps[-1].answered:7.1f} answered/s  {dict(steps[-1].statuses)}", flush=True)
    return write(steps, MIX, out, ROOT / "docs" / "benchmarks.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES))
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "load.md")
    given = parser.parse_args()
    sys.exit(0 if uvloop.run(run(given.rates, given.seconds, given.out)) else 1)
