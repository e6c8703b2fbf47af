"""What a switch of generations costs: building one, and the moment in which the pointer moves under writers.

Two tenants, one ten times the other, on a whole stack with a model endpoint that answers at once. Each is transformed,
promoted and demoted by its workflows while writers capture without a pause. Beside it: the endpoint's own ceiling, and
how long captures take when nothing is switched.
    python -m bench.cutover [VERSIONS=100000]
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from temporalio.client import Client

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

DIMS = 384
BATCH = 32
WRITERS = 4
QUIET_SECONDS = 10.0
CEILING_BATCHES = 200
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


@dataclass
class Latencies:
    """How long captures have taken, in milliseconds."""

    taken: list[float] = field(default_factory=list)

    def report(self) -> dict[str, float]:
        ordered = sorted(self.taken)
        return {
            "captures": len(ordered),
            "p50 ms": round(ordered[len(ordered) // 2], 1),
            "p99 ms": round(ordered[len(ordered) * 99 // 100], 1),
            "longest ms": round(ordered[-1], 1),
        }


async def main(versions: int) -> None:
    port = free_port()
    endpoint = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.instant_endpoint", str(port), str(DIMS)
    )
    url = f"http://127.0.0.1:{port}"
    try:
        with tempfile.TemporaryDirectory(prefix="memory-bench-") as folder:
            environment = {**os.environ, "EMBED_BASE_URL": url, "EMBED_MODEL": "instant"}
            async with DevStack(Path(folder) / "stack", port=0, environment=environment) as stack:
                ceiling = await ceilings(url)
                settings = Settings.model_validate({"database_url": stack.access.database, "db_pool_max": 12})
                client = await Client.connect(stack.access.temporal, data_converter=DATA_CONVERTER)
                async with Engine.open(settings) as engine:
                    reports = [
                        await switched(engine, client, url, f"t{count}", count) for count in (versions // 10, versions)
                    ]
    finally:
        endpoint.terminate()
        await endpoint.wait()
    print(json.dumps({"the endpoint's own ceiling, texts a second": ceiling, "tenants": reports}, indent=2))


async def ceilings(url: str) -> dict[str, float]:
    """Batches straight to the endpoint: one after the other, as a transform asks, and four at a time."""
    texts = [f"Number {n}: {WORDS}" for n in range(BATCH)]

    async def rate(at_once: int) -> float:
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:

            async def some() -> None:
                for _ in range(CEILING_BATCHES // at_once):
                    await http.post("/v1/embeddings", json={"model": "instant", "input": texts})

            began = time.perf_counter()
            await asyncio.gather(*(some() for _ in range(at_once)))
            return CEILING_BATCHES * BATCH / (time.perf_counter() - began)

    return {"one request at a time": round(await rate(1)), "four": round(await rate(4))}


async def switched(engine: Engine, client: Client, url: str, tenant: str, count: int) -> dict[str, Any]:
    await seed(engine, tenant, count)
    config = await engine.transforms.create_config(
        tenant, "instant", {"embed": {"baseUrl": url, "model": "instant"}, "chunk": {"maxTokens": 400}}
    )
    run_id = await engine.transforms.create_run(tenant, config.id)
    run = await client.start_workflow(
        names.TRANSFORM,
        TransformInput(tenant_id=tenant, run_id=run_id),
        id=names.transform_id(tenant, run_id),
        task_queue=names.QUEUE,
    )
    build = await built(engine, tenant, run_id)
    quiet = Latencies()
    async with writing(engine, tenant, quiet):
        await asyncio.sleep(QUIET_SECONDS)
    report: dict[str, Any] = {"versions": count, "built": build, "captures with nothing switched": quiet.report()}
    for name in (names.PROMOTE, names.DEMOTE, names.PROMOTE):
        latencies = Latencies()
        async with writing(engine, tenant, latencies):
            seconds, result = await cut(client, name, tenant, run_id)
        report.setdefault("cutovers", []).append(
            {
                "kind": result.kind,
                "seconds": round(seconds, 2),
                "captures were held ms": result.held_milliseconds,
                "stragglers": result.stragglers,
                "verified": result.verified,
                "captures meanwhile": latencies.report(),
            }
        )
    await run.terminate()
    return report


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
        "derived and embedded in": round(loaded, 1),
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


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
