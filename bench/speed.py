"""Search latency and throughput through HTTP beside their floor and two peers, and what the vector channel finds.

    python -m bench.speed [--searches 150] [--rounds 5] [--layouts 1k 10k …] [--without-peers] [--keep FOLDER]

Layouts: 1k, 10k and 100k chunks in one tenant, 1,000 tenants of 100, and in the largest tenant readers who see one
document in 1,000 and in 10,000; all in the same tables, whichever of them are measured. Product, floor and peers take
turns within each round, so that what else the machine does falls on all of them; ratios are of neighbours in time.

`make bench-speed` writes bench/results/speed.json and the part of docs/benchmarks.md between its marks. With --keep
the loaded tables stay in a folder and the next run begins with them; what it measures replaces what speed.json has of
the same layouts, so that a run can be made in parts. `--layouts` without a name only loads.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench import cpu
from bench.add import ROOT
from bench.http_client import HttpClient
from bench.layouts import LAYOUTS, RARE_TAGS, Corpus, Layout, Loader
from bench.peer_process import PEERS, PeerProcess, peer
from bench.service import DATA, Service, peers_installed, service
from bench.speed_floor import Floor, open_floor_pool
from bench.speed_report import write
from bench.vector_recall import peer_recall, recall
from memory_plane.dev.ports import HOST

CALLERS = (1, 4, 16)
LIMIT = 10
PEER_LAYOUT = "10k"
PEER_CHUNKS = 2_000
"""Fewer than the product has beside them, which favours them: each of their texts is embedded when it is added."""


@dataclass
class Measure:
    """Seconds of every search, and of all of them together; CPU seconds of the product's processes."""

    latencies: list[float]
    seconds: float
    cpu: float = 0.0

    def percentile(self, share: float) -> float:
        return sorted(self.latencies)[min(len(self.latencies) - 1, int(len(self.latencies) * share))]

    def row(self) -> dict[str, float]:
        return {
            **{f"p{part}": 1000 * self.percentile(part / 100) for part in (50, 95, 99)},
            "per second": len(self.latencies) / self.seconds,
            "cpu ms": 1000 * self.cpu / len(self.latencies),
        }


Side = Callable[[Sequence[str], int], Awaitable[Measure]]
"""Asks all the queries by so many callers."""


async def race(
    queries: Sequence[str],
    callers: int,
    ask: Callable[[HttpClient, str], Awaitable[None]],
    client: Callable[[], HttpClient],
    pids: Sequence[int],
) -> Measure:
    queue = iter(queries)
    latencies: list[float] = []
    spent = cpu.seconds([each for pid in pids for each in cpu.tree(pid)])

    async def call() -> None:
        async with client() as opened:
            for query in queue:
                began = time.perf_counter()
                await ask(opened, query)
                latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(callers)))
    seconds = time.perf_counter() - began
    return Measure(latencies, seconds, cpu.seconds([each for pid in pids for each in cpu.tree(pid)]) - spent)


def product(opened: Service, tenants: Sequence[str], tokens: dict[str, str]) -> Side:
    """Searches over HTTP; of several tenants each in its turn."""
    pids = list(opened.processes.values())

    async def side(queries: Sequence[str], callers: int) -> Measure:
        turn = iter(range(len(queries)))

        async def ask(client: HttpClient, query: str) -> None:
            tenant = tenants[next(turn) % len(tenants)]
            client.use({"Authorization": f"Bearer {tokens[tenant]}"})
            path = f"/api/tenants/{tenant}/memory/search"
            answer = await client.post_json(path, {"query": query, "limit": LIMIT})
            assert "degraded" not in answer, answer["degraded"]
            assert len(answer["items"]) == LIMIT, f"{len(answer['items'])} of {LIMIT}"

        return await race(queries, callers, ask, lambda: HttpClient(HOST, opened.api_port), pids)

    return side


def beneath(opened: Service, floors: Sequence[Floor]) -> Side:
    async def side(queries: Sequence[str], callers: int) -> Measure:
        chosen = {query: floors[place % len(floors)] for place, query in enumerate(queries)}
        for query, floor in chosen.items():
            await floor.prepare(query)

        async def ask(client: HttpClient, query: str) -> None:
            await chosen[query].search(client, query)

        pids = [opened.processes["database"], opened.processes["endpoint"]]
        return await race(queries, callers, ask, lambda: HttpClient(HOST, opened.endpoint_port), pids)

    return side


def beside(asked: PeerProcess) -> Side:
    async def side(queries: Sequence[str], callers: int) -> Measure:
        question = {"race": PEER_LAYOUT, "queries": list(queries), "limit": LIMIT, "callers": callers}
        answer = await asked.ask(question)
        return Measure(answer["seconds"], answer["total"])

    return side


async def sides_of(opened: Service, pool: Any, layout: Layout) -> dict[str, Side]:
    tenants = [layout.tenant(number) for number in range(min(layout.tenants, 50))]
    tokens = {tenant: await opened.token(tenant, resources=[("memory.space:*", "search")]) for tenant in tenants}
    floors = [await Floor.of(pool, tenant) for tenant in tenants]
    return {"product": product(opened, tenants, tokens), "floor": beneath(opened, floors)}


def rare_name(one_in: int) -> str:
    return f"1 in {one_in:,} visible"


async def rare_sides(opened: Service, pool: Any, layout: Layout, tag: str) -> dict[str, Side]:
    """A reader who sees little, beside one who sees everything."""
    tenant = layout.tenant()
    token = await opened.token(tenant, f"reader-of-{tag}", resources=[(tag, "search")])
    return {"restricted": product(opened, [tenant], {tenant: token}), **await sides_of(opened, pool, layout)}


async def measured(
    sides: dict[str, Side], corpus: Corpus, searches: int, rounds: int
) -> dict[str, dict[int, list[Measure]]]:
    """Side → callers → one measure a round. Every query is new: nothing is answered from a cache of vectors."""
    for side in sides.values():
        await side([corpus.query() for _ in range(60)], 4)
    found: dict[str, dict[int, list[Measure]]] = {name: {callers: [] for callers in CALLERS} for name in sides}
    for number in range(rounds):
        for callers in CALLERS:
            for name in sides if number % 2 else reversed(sides):
                queries = [corpus.query() for _ in range(searches * (1 if callers == 1 else 2))]
                found[name][callers].append(await sides[name](queries, callers))
    return found


async def load_peer(asked: PeerProcess, corpus: Corpus) -> None:
    """PEER_CHUNKS texts like those of PEER_LAYOUT, through the peer's own API: it embeds them all."""
    batch = 500
    for start in range(0, PEER_CHUNKS, batch):
        documents = [(str(number), corpus.text()) for number in range(start, start + batch)]
        await asked.load(PEER_LAYOUT, documents)


async def run(searches: int, rounds: int, names: Sequence[str], with_peers: bool, keep: Path | None) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memory-bench-speed-")))
        folder.mkdir(parents=True, exist_ok=True)
        opened = await stack.enter_async_context(service(folder))
        corpus = await Corpus.of(DATA, opened.endpoint_port)
        began = time.monotonic()
        await Loader(opened, corpus).load(LAYOUTS)
        print(f"loaded in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        pool = await open_floor_pool(opened.dsn, max(CALLERS))
        stack.callback(pool.terminate)
        found: dict[str, dict[str, Any]] = {"recall": {}, "speed": {}, "peers": {}}
        peers: dict[str, Side] = {}
        if with_peers and peers_installed():
            for name, kind in PEERS.items():
                asked = await stack.enter_async_context(peer(kind, opened, folder))
                if asked.is_new:
                    await load_peer(asked, corpus)
                peers[name] = beside(asked)
                found["peers"][name] = await peer_recall(opened, asked, kind, PEER_LAYOUT, corpus)
                print(f"{name} loaded, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

        async def note(name: str, layout: Layout, sides: dict[str, Side], tag: str | None = None) -> None:
            found["recall"][name] = await recall(opened, layout.tenant(), corpus, tag=tag)
            measures = await measured(sides, corpus, searches, rounds)
            found["speed"][name] = rows(measures) | {"rounds": rounds, "searches": searches, "load": os.getloadavg()[0]}
            print(json.dumps({name: found["speed"][name]}, indent=2), flush=True)

        for layout in LAYOUTS:
            if layout.name in names:
                sides = await sides_of(opened, pool, layout) | (peers if layout.name == PEER_LAYOUT else {})
                await note(layout.name, layout, sides)
        largest = max(LAYOUTS, key=lambda each: each.chunks)
        for one_in, tag in RARE_TAGS.items():
            if rare_name(one_in) in names:
                await note(rare_name(one_in), largest, await rare_sides(opened, pool, largest, tag), tag)
    return found


def rows(found: dict[str, dict[int, list[Measure]]]) -> dict[str, Any]:
    """Medians over the rounds, and the ratios of each round's neighbours in time."""
    sides = {
        name: {str(callers): _medians(measures) for callers, measures in by_callers.items()}
        for name, by_callers in found.items()
    }
    pairs = [("product", "floor"), ("restricted", "product")]
    pairs += [(peer_name, "product") for peer_name in PEERS]
    times = {
        f"{above} / {below}": {
            str(callers): _ratios(found[above][callers], found[below][callers]) for callers in CALLERS
        }
        for above, below in pairs
        if above in found and below in found
    }
    return {"sides": sides, "times": times}


def _medians(measures: Sequence[Measure]) -> dict[str, float]:
    each = [measure.row() for measure in measures]
    return {key: statistics.median(row[key] for row in each) for key in each[0]}


def _ratios(above: Sequence[Measure], below: Sequence[Measure]) -> dict[str, list[float]]:
    return {
        f"p{part}": sorted(
            left.percentile(part / 100) / right.percentile(part / 100) for left, right in zip(above, below, strict=True)
        )
        for part in (50, 95)
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=150, help="a measurement at one caller; twice that at more")
    parser.add_argument("--rounds", type=int, default=5)
    known = [*(layout.name for layout in LAYOUTS), *map(rare_name, RARE_TAGS)]
    parser.add_argument("--layouts", nargs="*", choices=known, default=known)
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for the loaded tables")
    given = parser.parse_args()
    peers_too = not given.without_peers and PEER_LAYOUT in given.layouts
    write(uvloop.run(run(given.searches, given.rounds, given.layouts, peers_too, given.keep)), ROOT)
