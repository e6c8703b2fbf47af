"""What a switch of generations costs: building one, and the moment in which the pointer moves under writers.

Two tenants, one ten times the other, on a whole stack with a model endpoint that answers at once. Each is transformed,
promoted and demoted by its workflows while writers capture some 60 a second. Beside it: the bare statements that a cut
needs, under the same writers; how long captures take when nothing is switched; and each endpoint's own ceiling. A
third, small tenant is transformed onto the local MiniLM, which is as slow as models are.
    python -m bench.cutover [VERSIONS=100000]
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from temporalio.client import Client, WorkflowHandle

from bench.cutover_report import write
from memory_plane.contracts import names
from memory_plane.contracts.enums import GrantEffect, GrantOrigin, Verb
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.recipe import Recipe
from memory_plane.contracts.transforms import CutoverInput, CutoverResult, TransformInput
from memory_plane.contracts.wire import AddFields
from memory_plane.core.caller import Caller
from memory_plane.core.grants import GrantRule
from memory_plane.dev.ports import free_port
from memory_plane.dev.stack import DevStack
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from memory_plane.store.grants import PostgresGrantStore
from memory_plane.temporal import DATA_CONVERTER

ROOT = Path(__file__).resolve().parents[1]
DIMS = 384
BATCH = 32
WRITERS, WRITER_PAUSE = 4, 0.05
"""Some 60 captures a second in all. Writers without a pause add faster than a catch-up embeds, and it never ends."""
QUIET_SECONDS = 10.0
FLOOR_ROUNDS, FLOOR_PAUSE = 50, 0.1
CEILING_BATCHES, REAL_BATCHES = 200, 20
REAL_VERSIONS = 2_000
REAL_MODEL = "all-MiniLM-L6-v2"
WORDS = "the otter swims past the old mill and dives where the water is deep and green near the weir " * 2

# Rows as captures write them, a million words faster: one statement a table instead of one transaction a document.
_SEED = (
    """
    INSERT INTO memory.document (id, tenant_id, adapter, external_ref, title, kind, access_tags,
        created_by_principal_id, created_at, last_seen_at)
    SELECT 'kdoc_' || $1 || lpad(n::text, 8, '0'), $1, 'bench', 'doc-' || n, 'Note ' || n, 'note',
           ARRAY['memory.owner:ann'], 'ann', now(), now() FROM generate_series(1, $2::int) n
    """,
    """
    INSERT INTO memory.raw_capture (id, tenant_id, document_id, source_hash, adapter, raw_text, fetched_at)
    SELECT 'kraw_' || $1 || lpad(n::text, 8, '0'), $1, 'kdoc_' || $1 || lpad(n::text, 8, '0'), 'hash-' || n, 'bench',
           jsonb_build_object('title', 'Note ' || n, 'text', 'Number ' || n || ': ' || $3, 'adapter', 'bench',
                              'external_ref', 'doc-' || n)::text, now()
    FROM generate_series(1, $2::int) n
    """,
    """
    INSERT INTO memory.version (id, tenant_id, document_id, version, status, status_at, title, kind, content_hash,
        occurred_at, ingested_at, temporal_class, retention_class, provenance, source_class,
        created_by_principal_id, created_by_kind, authority, raw_capture_id, feed_position)
    SELECT 'kver_' || $1 || lpad(n::text, 8, '0'), $1, 'kdoc_' || $1 || lpad(n::text, 8, '0'), 1, 'active', now(),
           'Note ' || n, 'note', 'hash-' || n, now(), now(), 'event', 'standard', 'stated', 'native', 'ann', 'human',
           0.5, 'kraw_' || $1 || lpad(n::text, 8, '0'), n FROM generate_series(1, $2::int) n
    """,
    """
    INSERT INTO memory.feed_event (tenant_id, position, kind, document_id, version_id, at)
    SELECT $1, n, 'captured', 'kdoc_' || $1 || lpad(n::text, 8, '0'), 'kver_' || $1 || lpad(n::text, 8, '0'), now()
    FROM generate_series(1, $2::int) n
    """,
    "INSERT INTO memory.tenant_counter (tenant_id, position) VALUES ($1, $2)",
    """
    INSERT INTO memory.derivation (version_id, generation_id, tenant_id, chunk_count, embed_state)
    SELECT 'kver_' || $1 || lpad(n::text, 8, '0'), $4, $1, 1, 'not_configured' FROM generate_series(1, $2::int) n
    """,
    """
    INSERT INTO memory.chunk (id, tenant_id, generation_id, document_id, version_id, ordinal, text, context,
        span_start, span_end, token_count)
    SELECT 'kchk_' || $1 || lpad(n::text, 8, '0'), $1, $4, 'kdoc_' || $1 || lpad(n::text, 8, '0'),
           'kver_' || $1 || lpad(n::text, 8, '0'), 0, 'Number ' || n || ': ' || $3, '', 0, length($3), 40
    FROM generate_series(1, $2::int) n
    """,
)


# What a cut cannot do without: the lock that keeps captures out, and the rows of both generations and of the run.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('bench.cutover', 0))"
_FLIP = (
    "UPDATE memory.generation SET state_at = state_at WHERE tenant_id = $1 AND id = $2",
    "UPDATE memory.transform_run SET promoted_at = promoted_at WHERE tenant_id = $1 AND id = $2",
)


@dataclass
class Latencies:
    """How long captures have taken, in milliseconds."""

    taken: list[float] = field(default_factory=list)

    def report(self) -> dict[str, float]:
        ordered = sorted(self.taken)
        return {
            "captures": len(ordered),
            "p50": round(ordered[len(ordered) // 2], 1),
            "p99": round(ordered[len(ordered) * 99 // 100], 1),
            "longest": round(ordered[-1], 1),
        }


async def main(versions: int) -> None:
    load = os.getloadavg()[0]
    async with endpoint("bench.instant_endpoint", str(DIMS)) as url, endpoint("memory_plane.dev.endpoint") as real:
        with tempfile.TemporaryDirectory(prefix="memory-bench-") as folder:
            environment = {**os.environ, "EMBED_BASE_URL": url, "EMBED_MODEL": "instant"}
            async with DevStack(Path(folder) / "stack", port=0, environment=environment) as stack:
                settings = Settings.model_validate({"database_url": stack.access.database, "db_pool_max": 12})
                client = await Client.connect(stack.access.temporal, data_converter=DATA_CONVERTER)
                async with Engine.open(settings) as engine:
                    tenants = []
                    for count in (versions // 10, versions):
                        say(f"{count} versions under another recipe …")
                        tenants.append(await switched(engine, client, url, f"t{count}", count))
                        say(f"… {tenants[-1]}")
                    say(f"{REAL_VERSIONS} versions onto {REAL_MODEL} …")
                    onto_real = await transformed_by(engine, client, real)
                ceilings = {
                    "instant": await ceiling(url, "instant", CEILING_BATCHES),
                    REAL_MODEL: await ceiling(real, REAL_MODEL, REAL_BATCHES),
                }
    write({"load": load, "ceilings": ceilings, "tenants": tenants, "real": onto_real}, ROOT)


@asynccontextmanager
async def endpoint(module: str, *arguments: str) -> AsyncIterator[str]:
    """A model endpoint of its own process; its address, once it answers."""
    port = free_port()
    given = [str(port), *arguments] if arguments else ["--port", str(port)]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", module, *given)
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=url) as http:
            while True:
                try:
                    await http.post("/v1/embeddings", json={"model": REAL_MODEL, "input": ["?"]}, timeout=30)
                    break
                except httpx.ConnectError:
                    await asyncio.sleep(0.1)
        yield url
    finally:
        process.terminate()
        await process.wait()


async def ceiling(url: str, model: str, batches: int) -> float:
    """Texts a second of batches straight to the endpoint, one after the other, as a transform asks."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        began = time.perf_counter()
        for batch in range(batches):
            texts = [f"Number {batch * BATCH + n}: {WORDS}" for n in range(BATCH)]
            (await http.post("/v1/embeddings", json={"model": model, "input": texts})).raise_for_status()
    return round(batches * BATCH / (time.perf_counter() - began))


async def transformed_by(engine: Engine, client: Client, url: str) -> dict[str, Any]:
    await seed(engine, "real", REAL_VERSIONS)
    run_id, handle = await started(engine, client, "real", url, REAL_MODEL)
    report = await built(engine, "real", run_id)
    await handle.terminate()
    return report


async def started(
    engine: Engine, client: Client, tenant: str, url: str, model: str
) -> tuple[str, WorkflowHandle[Any, Any]]:
    config = await engine.transforms.create_config(
        tenant, model, {"embed": {"baseUrl": url, "model": model}, "chunk": {"maxTokens": 400}}
    )
    run_id = await engine.transforms.create_run(tenant, config.id)
    handle = await client.start_workflow(
        names.TRANSFORM,
        TransformInput(tenant_id=tenant, run_id=run_id),
        id=names.transform_id(tenant, run_id),
        task_queue=names.QUEUE,
    )
    return run_id, handle


async def switched(engine: Engine, client: Client, url: str, tenant: str, count: int) -> dict[str, Any]:
    """Seed, build, and move the pointer three times."""
    await seed(engine, tenant, count)
    # A model of its own, so that its table is new: filled first, and indexed after.
    run_id, run = await started(engine, client, tenant, url, f"instant-{tenant}")
    report: dict[str, Any] = {"versions": count, "built": await built(engine, tenant, run_id)}
    quiet = Latencies()
    async with writing(engine, tenant, quiet):
        await asyncio.sleep(QUIET_SECONDS)
    async with writing(engine, tenant, Latencies()):
        report["floor"] = await floor(engine, tenant, run_id)
    report["quiet"] = quiet.report()
    cutovers = report["cutovers"] = []
    for name in (names.PROMOTE, names.DEMOTE, names.PROMOTE):
        behind = await lag(engine, tenant, run_id)
        latencies = Latencies()
        async with writing(engine, tenant, latencies):
            seconds, result = await cut(client, name, tenant, run_id)
        cutovers.append(
            {
                "kind": result.kind,
                "behind": behind,
                "seconds": round(seconds, 2),
                "held": result.held_milliseconds,
                "stragglers": result.stragglers,
                "verified": result.verified,
                "captures": latencies.report(),
            }
        )
    await run.terminate()
    return report


async def floor(engine: Engine, tenant: str, run_id: str) -> dict[str, float]:
    """Milliseconds of the bare statements of a cut, in one transaction, while the writers write."""
    live = await engine.pool.fetchval(
        "SELECT id FROM memory.generation WHERE tenant_id = $1 AND state = 'live'", tenant
    )
    taken = []
    async with engine.pool.acquire() as conn:
        for _ in range(FLOOR_ROUNDS):
            began = time.perf_counter()
            async with conn.transaction():
                await conn.execute(_LOCK)
                await conn.execute(_FLIP[0], tenant, live)
                await conn.execute(_FLIP[0], tenant, run_id)
                await conn.execute(_FLIP[1], tenant, run_id)
            taken.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(FLOOR_PAUSE)
    return {"p50": round(statistics.median(taken), 1), "longest": round(max(taken), 1)}


async def lag(engine: Engine, tenant: str, run_id: str) -> int:
    """Feed positions that the generation which is to go live has not derived."""
    found: int = await engine.pool.fetchval(
        """
        SELECT c.position - g.caught_up_to FROM memory.generation g JOIN memory.tenant_counter c USING (tenant_id)
        WHERE g.tenant_id = $1 AND g.state IN ('staged', 'archived') ORDER BY g.id = $2 DESC LIMIT 1
        """,
        tenant,
        run_id,
    )
    return found


async def seed(engine: Engine, tenant: str, count: int) -> None:
    """A tenant of `count` documents under a live generation without vectors; ann may add."""
    generation = new_id(IdKind.GENERATION)
    await engine.pool.execute(
        "INSERT INTO memory.generation (id, tenant_id, state, recipe) VALUES ($1, $2, 'live', $3)",
        generation,
        tenant,
        Recipe().stored(),
    )
    values = {"$1": tenant, "$2": count, "$3": WORDS, "$4": generation}
    async with engine.pool.acquire() as conn:
        await conn.execute("SET statement_timeout = 0")
        for statement in _SEED:
            # Only the parameters that a statement speaks of, in its own numbering.
            used = [mark for mark in values if mark in statement]
            text = statement
            for number, mark in enumerate(used, 1):
                text = text.replace(mark, f"${number}")
            await conn.execute(text, *(values[mark] for mark in used), timeout=600)
        await conn.execute("VACUUM ANALYZE", timeout=600)
        await conn.execute("RESET statement_timeout")
    await PostgresGrantStore(engine.pool).put_grant(
        tenant,
        GrantRule(
            new_id(IdKind.GRANT_RULE), "ann", None, "memory", Verb.ADD.value, GrantEffect.ALLOW, GrantOrigin.SYSTEM
        ),
    )


async def built(engine: Engine, tenant: str, run_id: str) -> dict[str, Any]:
    """Follow the build; its rates, and how long the index took after it."""
    began = time.monotonic()
    loaded = None
    while True:
        standing = await engine.transforms.standing(tenant, run_id)
        if loaded is None and standing.total and standing.versions == standing.total and not standing.pending:
            loaded = time.monotonic() - began
        if standing.status != "running":
            break
        await asyncio.sleep(0.1)
    seconds = time.monotonic() - began
    loaded = loaded or seconds
    assert standing.status == "completed", standing
    return {
        "seconds": round(seconds, 1),
        "loaded": round(loaded, 1),
        "versions a second": round(standing.versions / loaded),
        "chunks a second": round(standing.chunks / loaded),
    }


@asynccontextmanager
async def writing(engine: Engine, tenant: str, latencies: Latencies) -> AsyncIterator[None]:
    visibility = await engine.access.visibility(Caller(tenant, "ann"))
    over = asyncio.Event()

    async def write(writer: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            payload = {"title": f"Late {writer} {number}", "text": f"Late {number}: {WORDS}"}
            began = time.perf_counter()
            await engine.capture.capture(visibility, AddFields.model_validate(payload), payload=payload)
            latencies.taken.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(WRITER_PAUSE)

    writers = [asyncio.create_task(write(n)) for n in range(WRITERS)]
    try:
        yield
    finally:
        over.set()
        await asyncio.gather(*writers)


async def cut(client: Client, name: str, tenant: str, run_id: str) -> tuple[float, CutoverResult]:
    began = time.perf_counter()
    result: CutoverResult = await client.execute_workflow(
        name,
        CutoverInput(tenant_id=tenant, generation=run_id),
        id=names.cutover_id(tenant),
        task_queue=names.QUEUE,
        result_type=CutoverResult,
    )
    return time.perf_counter() - began, result


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
