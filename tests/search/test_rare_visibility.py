"""Ten thousand better matches that the caller may not see, and a full page of the few that he may (invariant 9)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pytest

from memory_plane.contracts.enums import Verb
from memory_plane.core.vector_scan import VectorScan
from memory_plane.plane import search_retrieve
from memory_plane.plane.engine import Engine
from memory_plane.store.database import Connection, transaction
from memory_plane.store.dense import DenseSearch, search
from memory_plane.store.eligible import Eligibility
from memory_plane.store.lexical_statistics import refresh
from memory_plane.store.vectors import as_parameter, index_name, index_sql
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Status
from tests.search.world import World

TEAM = "memory.space:team"
TEMPLATES, COPIES = 20, 500
VISIBLE = 50

_COPY = """
WITH template AS (
    SELECT d.id AS document_id, v.id AS version_id, c.id AS chunk_id, v.raw_capture_id, n,
           v.feed_position AS place, $2 || d.id || '-' || n AS new
    FROM memory.document d
    JOIN memory.version v ON v.document_id = d.id JOIN memory.chunk c ON c.version_id = v.id
    CROSS JOIN generate_series(1, $3::int) n
    WHERE d.tenant_id = $1 AND d.title = 'hidden'
), document AS (
    INSERT INTO memory.document (id, tenant_id, adapter, external_ref, title, kind, access_tags, attributes,
                                 created_by_principal_id, created_at, last_seen_at, occurred_at)
    SELECT t.new, d.tenant_id, d.adapter, t.new, d.title, d.kind, d.access_tags, d.attributes,
           d.created_by_principal_id, d.created_at, d.last_seen_at + interval '1 hour', d.occurred_at
    FROM template t JOIN memory.document d ON d.id = t.document_id
), raw_capture AS (
    INSERT INTO memory.raw_capture (id, tenant_id, document_id, source_hash, adapter, raw_text, fetched_at)
    SELECT t.new, r.tenant_id, t.new, t.new, r.adapter, r.raw_text, r.fetched_at
    FROM template t JOIN memory.raw_capture r ON r.id = t.raw_capture_id
), version AS (
    INSERT INTO memory.version (id, tenant_id, document_id, version, status, status_at, title, kind, content_hash,
        occurred_at, ingested_at, temporal_class, retention_class, provenance, source_class, created_by_principal_id,
        created_by_kind, authority, raw_capture_id, feed_position)
    SELECT t.new, v.tenant_id, t.new, v.version, v.status, v.status_at, v.title, v.kind, t.new, v.occurred_at,
           v.ingested_at, v.temporal_class, v.retention_class, v.provenance, v.source_class,
           v.created_by_principal_id, v.created_by_kind, v.authority, t.new, 1000 + t.place * $3 + t.n
    FROM template t JOIN memory.version v ON v.id = t.version_id
), chunk AS (
    INSERT INTO memory.chunk (id, tenant_id, generation_id, document_id, version_id, ordinal, text, context,
                              span_start, span_end, token_count)
    SELECT t.new, c.tenant_id, c.generation_id, t.new, t.new, c.ordinal, c.text, c.context, c.span_start,
           c.span_end, c.token_count
    FROM template t JOIN memory.chunk c ON c.id = t.chunk_id
)
INSERT INTO memory.derivation (version_id, generation_id, tenant_id, chunk_count, embed_state)
SELECT t.new, r.generation_id, r.tenant_id, r.chunk_count, r.embed_state
FROM template t JOIN memory.derivation r ON r.version_id = t.version_id
"""
# Near the template and near each other, as many texts of one kind are.
_COPY_VECTORS = """
INSERT INTO memory.{table} (chunk_id, slot, tenant_id, generation_id, version_id, embedding)
SELECT $2 || d.id || '-' || n, e.slot, e.tenant_id, e.generation_id, $2 || d.id || '-' || n,
       l2_normalize(e.embedding + ARRAY(
           SELECT (random() - 0.5) / 40 FROM generate_series(1, 64) WHERE n IS NOT NULL)::real[]::halfvec)
FROM memory.document d JOIN memory.version v ON v.document_id = d.id
JOIN memory.{table} e ON e.version_id = v.id
CROSS JOIN generate_series(1, $3::int) n
WHERE d.tenant_id = $1 AND d.title = 'hidden'
"""


@dataclass(frozen=True)
class Crowd:
    world: World
    visible: frozenset[str]


async def multiply(world: World) -> None:
    """COPIES of every hidden document, the vector index built anew as a transform does."""
    async with transaction(world.engine.pool) as conn:
        await conn.execute("SET LOCAL statement_timeout = '2min'")
        await conn.execute(_COPY, world.tenant, f"{world.tenant}-", COPIES)
        row = await conn.fetchrow("SELECT table_name, dims FROM memory.embed_model LIMIT 1")
        assert row is not None
        await conn.execute(f"DROP INDEX memory.{index_name(row['table_name'])}")
        await conn.execute(_COPY_VECTORS.format(table=row["table_name"]), world.tenant, f"{world.tenant}-", COPIES)
        await conn.execute(index_sql(row["table_name"], row["dims"], concurrently=False))
        await conn.execute("UPDATE memory.tenant_counter SET position = 1000000 WHERE tenant_id = $1", world.tenant)
        await conn.execute("ANALYZE")


@pytest.fixture(scope="module")
async def crowd(hybrid_engine: Engine, module_fake: FakeEndpoint) -> AsyncIterator[Crowd]:
    module_fake.heal()
    world = World(hybrid_engine, f"t-{uuid4().hex[:12]}")
    await world.allow("ann")
    await world.allow("bob", Verb.SEARCH)
    await world.grant("bob", TEAM)
    for number in range(TEMPLATES):
        await world.add(f"alpha beta gamma delta, alpha beta gamma {number}", title="hidden")
    await multiply(world)
    seen = [
        await world.add(f"alpha and other things, the {number}th of them", title="open", access_tags=[TEAM])
        for number in range(VISIBLE)
    ]
    statement = "SELECT id FROM memory.generation WHERE tenant_id = $1 AND state = 'live'"
    await refresh(world.engine.pool, world.tenant, await world.engine.pool.fetchval(statement, world.tenant))
    yield Crowd(world, frozenset(added.document_id for added in seen))


QUERIES = {
    "both channels": "alpha beta gamma",
    "vectors alone": "omega",
    "a phrase and a word ruled out": 'alpha "other things" -zeppelin',
}


@pytest.fixture(params=[0, 500], ids=["going on", "small set"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By channels that go on past what is hidden, and by reading exactly what is visible."""
    monkeypatch.setattr(search_retrieve, "SMALL_SET", request.param)
    monkeypatch.setattr(search_retrieve, "LARGE_FOR", 0.0)


@pytest.mark.usefixtures("how")
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
async def test_inv_09_a_page_is_full_where_one_in_two_hundred_is_visible(crowd: Crowd, query: str) -> None:
    for limit in (1, 10, 50):
        response = await crowd.world.search(query, principal="bob", limit=limit)
        assert response.degraded is None
        found = [item.document_id for item in response.items]
        assert len(found) == len(set(found)) == limit
        assert set(found) <= crowd.visible


@pytest.mark.usefixtures("how")
async def test_inv_09_a_page_is_full_by_words_alone_and_by_recency_alone(
    crowd: Crowd, module_fake: FakeEndpoint
) -> None:
    module_fake.fail(Status(500))
    by_words = await crowd.world.found("alpha", principal="bob", limit=50)
    module_fake.heal()
    by_recency = await crowd.world.found("", principal="bob", kinds=["note"], limit=50)
    assert frozenset(by_words) == frozenset(by_recency) == crowd.visible


async def test_inv_09_the_crowd_is_large_enough_for_the_graph(crowd: Crowd) -> None:
    """What the tests above go through: the graph of the whole table, not a reading of every vector."""
    response = await crowd.world.search("alpha beta gamma", explain=True)
    assert response.explain is not None and response.explain["vectorScan"] == VectorScan.GRAPH.value


async def test_few_documents_cost_their_own_rows_whatever_plan_is_kept(crowd: Crowd) -> None:
    """A kept plan knows no values: it must not read the vectors of the whole tenant for those of fifty."""
    tenant = crowd.world.tenant
    async with transaction(crowd.world.engine.pool) as conn:
        row = await conn.fetchrow(
            """
            SELECT g.id, m.table_name, m.dims FROM memory.generation g, memory.embed_model m
            WHERE g.tenant_id = $1 AND g.state = 'live' LIMIT 1
            """,
            tenant,
        )
        assert row is not None
        what = DenseSearch(
            *(tenant, row["id"], row["table_name"], row["dims"], as_parameter(np.ones(row["dims"], dtype=np.float32))),
            VectorScan.EXACT,
            documents=sorted(crowd.visible),
        )
        await conn.execute("SET LOCAL plan_cache_mode = 'force_generic_plan'")
        before = await _rows_read(conn, row["table_name"])
        found = await search(conn, what, Eligibility((await crowd.world.visibility("bob")).scope), 100)
        assert {each.document_id for each in found} == crowd.visible
        read = await _rows_read(conn, row["table_name"]) - before
    assert VISIBLE <= read <= 2 * VISIBLE


async def _rows_read(conn: Connection, table: str) -> int:
    """By this session, since it told the server last, which is once a second: earlier searches count."""
    read: int = await conn.fetchval(
        """
        SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = $1
        """,
        table,
    )
    return read
