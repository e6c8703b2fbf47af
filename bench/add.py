"""Adds of about 200 words through HTTP, beside their floor, in one run; one caller and sixteen.

    python -m bench.add [--adds 300] [--rounds 5]

The API is a process of its own, as in production, on a durable PostgreSQL; the endpoint answers at once. Product and
floor take turns, so that what else the machine does falls on both; the ratio of a round is of neighbours in time.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import uvloop

from bench import cpu
from bench.add_floor import Floor, FloorInput, open_floor_pool
from bench.http_client import HttpClient
from memory_plane.contracts.enums import GrantEffect, GrantOrigin
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.grants import GrantRule
from memory_plane.dev.ports import HOST, free_port
from memory_plane.dev.postgres import PostgresServer
from memory_plane.models.pool import ModelPool
from memory_plane.plane.embedding import Embedding
from memory_plane.settings import Settings
from memory_plane.store import tokens
from memory_plane.store.database import Pool, connection, open_pool
from memory_plane.store.grants import put_rules
from memory_plane.store.migrate import migrate

ROOT = Path(__file__).resolve().parents[1]
WORDS = 200
DIMS = 384
MODEL = "instant"
TENANT, PRINCIPAL = "bench", "bench"
CALLERS = (1, 16)
WARM_UP = 400
TARGET_P50, TARGET_RATE = 1.6, 0.6

Text = tuple[str, str]
"""Title and text."""
Input = TypeVar("Input")


@dataclass
class Measure:
    """Seconds of each add and of all of them, and the CPU seconds that each process has spent on them."""

    latencies: list[float]
    seconds: float
    cpu: dict[str, float]

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        return sorted(self.latencies)[min(len(self.latencies) - 1, int(len(self.latencies) * share))]


class Texts:
    """Texts of WORDS words, no two alike, of a vocabulary with a few common words and many rare ones."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        letters = "abcdefghijklmnoprstuvwy"
        self._words = ["".join(self._random.choices(letters, k=self._random.randint(3, 9))) for _ in range(20_000)]
        self._weights = [1 / rank for rank in range(1, len(self._words) + 1)]

    def make(self, count: int) -> list[Text]:
        return [(" ".join(self._pick(5)), " ".join(self._pick(WORDS))) for _ in range(count)]

    def _pick(self, count: int) -> list[str]:
        return self._random.choices(self._words, self._weights, k=count)


async def measure(
    add: Callable[[HttpClient, Input], Awaitable[None]],
    port: int,
    headers: dict[str, str],
    inputs: list[Input],
    callers: int,
    processes: dict[str, int] | None = None,
) -> Measure:
    """The adds of all inputs by so many callers, each with a connection of its own."""
    trees = {name: cpu.tree(pid) for name, pid in (processes or {}).items()} | {"caller": [os.getpid()]}
    spent = {name: cpu.seconds(pids) for name, pids in trees.items()}
    queue = iter(inputs)
    latencies: list[float] = []

    async def call() -> None:
        async with HttpClient(HOST, port, headers) as client:
            for given in queue:
                began = time.perf_counter()
                await add(client, given)
                latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(callers)))
    seconds = time.perf_counter() - began
    return Measure(latencies, seconds, {name: cpu.seconds(pids) - spent[name] for name, pids in trees.items()})


@asynccontextmanager
async def process(log: Path, *arguments: str, environment: dict[str, str] | None = None) -> AsyncIterator[int]:
    """Its process id."""
    with log.open("wb") as stream:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, *arguments), cwd=ROOT, env=os.environ | (environment or {}), stdout=stream, stderr=stream
        )
        try:
            yield child.pid
        finally:
            if child.returncode is None:
                child.send_signal(signal.SIGTERM)
            await child.wait()


async def answers(port: int, log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            async with HttpClient(HOST, port) as client:
                await client.post("/", b"{}")
                return
        except OSError:
            if time.monotonic() > deadline:
                words = (await asyncio.to_thread(log.read_text))[-2000:]
                raise SystemExit(f"No answer within a minute:\n{words}") from None
            await asyncio.sleep(0.05)


async def prepare(pool: Pool, settings: Settings) -> str:
    """The worker's part and the operator's: the model's table, a token, and leave to add. The token."""
    async with ModelPool() as models:
        await Embedding(pool, settings, models).ensure_engine_model()
    rule = GrantRule(
        id=new_id(IdKind.GRANT_RULE),
        principal_id=PRINCIPAL,
        role_id=None,
        resource="memory",
        action="add",
        effect=GrantEffect.ALLOW,
        origin=GrantOrigin.SYSTEM,
    )
    async with connection(pool) as conn:
        await put_rules(conn, TENANT, [rule])
        token, _ = await tokens.issue(conn, TENANT, PRINCIPAL)
    return token


async def add_over_http(client: HttpClient, given: Text) -> None:
    title, text = given
    answer = await client.post_json(f"/api/tenants/{TENANT}/memory/add", {"title": title, "text": text})
    assert "degraded" not in answer, answer


async def run(adds: int, rounds: int) -> bool:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memory-bench-add-")))
        server = PostgresServer(folder / "postgres")
        await server.start()
        stack.push_async_callback(server.stop)
        dsn = await server.ensure_database()
        await migrate(dsn, "english", ROOT / "migrations")
        endpoint_port, api_port = free_port(), free_port()
        arguments: tuple[str, ...] = ("-m", "bench.instant_endpoint", str(endpoint_port), str(DIMS))
        endpoint_pid = await stack.enter_async_context(process(folder / "endpoint.log", *arguments))
        await answers(endpoint_port, folder / "endpoint.log")
        environment = {
            "DATABASE_URL": dsn,
            "EMBED_BASE_URL": f"http://{HOST}:{endpoint_port}",
            "EMBED_MODEL": MODEL,
            "MEMORY_AUTH": "token",
        }
        settings = Settings.model_validate({name.lower(): value for name, value in environment.items()})
        pool = await open_pool(settings)
        stack.callback(pool.terminate)
        token = await prepare(pool, settings)
        arguments = ("-m", "uvicorn", "--factory", "api.app:app_from_environment", "--host", HOST)
        arguments += ("--port", str(api_port), "--no-access-log", "--no-server-header")
        api_pid = await stack.enter_async_context(process(folder / "api.log", *arguments, environment=environment))
        await answers(api_port, folder / "api.log")
        floor_pool = await open_floor_pool(dsn, settings.db_pool_max)
        stack.callback(floor_pool.terminate)

        table = await pool.fetchval("SELECT table_name FROM memory.embed_model LIMIT 1")
        floor = Floor(floor_pool, "floor", "kgen_floor", table, MODEL)
        processes = {"database": server.child.pid, "endpoint": endpoint_pid, "api": api_pid}
        headers = {"Authorization": f"Bearer {token}"}
        texts = Texts()

        async def product(count: int, callers: int) -> Measure:
            return await measure(add_over_http, api_port, headers, texts.make(count), callers, processes)

        async def beneath(count: int, callers: int) -> Measure:
            inputs = [FloorInput.make(title, text) for title, text in texts.make(count)]
            return await measure(floor.add, endpoint_port, {}, inputs, callers, processes)

        sides = {"add": product, "floor": beneath}
        for side in sides.values():
            await side(WARM_UP, max(CALLERS))
        results: dict[tuple[str, int], list[Measure]] = {}
        for number in range(rounds):
            for callers in CALLERS:
                for name in sides if number % 2 else reversed(sides):
                    found = await sides[name](adds * (1 if callers == 1 else 3), callers)
                    results.setdefault((name, callers), []).append(found)
        pending = await pool.fetchval("SELECT count(*) FROM memory.derivation WHERE embed_state <> 'embedded'")
        assert pending == 0, f"{pending} adds were answered and not embedded"
    return report(results, rounds)


def report(results: dict[tuple[str, int], list[Measure]], rounds: int) -> bool:
    """Medians over the rounds. Whether the targets are met."""
    rows = {}
    for (name, callers), found in results.items():
        rows[f"{name}, {callers} caller{'s' if callers > 1 else ''}"] = {
            "p10 ms": round(1000 * statistics.median(each.percentile(0.1) for each in found), 2),
            "p50 ms": round(1000 * statistics.median(each.percentile(0.5) for each in found), 2),
            "p95 ms": round(1000 * statistics.median(each.percentile(0.95) for each in found), 2),
            "adds/s": round(statistics.median(each.rate for each in found)),
            "cpu ms an add": {
                part: round(1000 * statistics.median(each.cpu[part] / len(each.latencies) for each in found), 2)
                for part in found[0].cpu
            },
        }
    latency = [
        ours.percentile(0.5) / floor.percentile(0.5)
        for ours, floor in zip(results["add", 1], results["floor", 1], strict=True)
    ]
    rate = [ours.rate / floor.rate for ours, floor in zip(results["add", 16], results["floor", 16], strict=True)]
    summary = {
        "p50 at 1 caller, times the floor": [round(each, 2) for each in sorted(latency)],
        "adds/s at 16 callers, times the floor": [round(each, 2) for each in sorted(rate)],
        "targets": f"median ≤ {TARGET_P50} and ≥ {TARGET_RATE}",
        "words": WORDS,
        "rounds": rounds,
        "load of the machine": [round(each, 1) for each in os.getloadavg()],
    }
    print(json.dumps(rows | summary, indent=2, ensure_ascii=False))
    return statistics.median(latency) <= TARGET_P50 and statistics.median(rate) >= TARGET_RATE


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adds", type=int, default=300, help="a measurement at one caller; three times that at 16")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    sys.exit(0 if uvloop.run(run(given.adds, given.rounds)) else 1)
