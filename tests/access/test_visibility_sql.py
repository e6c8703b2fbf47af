"""The compiled predicate on a real database: it may bring too much and never too little."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_plane.contracts.enums import GrantEffect
from memory_plane.core.caller import Caller
from memory_plane.core.grants import GrantRule
from memory_plane.core.visibility import MAX_LIKE_PATTERNS, Visibility
from memory_plane.store.database import Pool, connection
from memory_plane.store.visibility import predicate
from tests.access import seed

TAGS = [
    "memory.space:eng",
    "memory.space:e%g",
    "memory.space:e_g",
    "memory.team:a\\b",
    "x:aba",
    "x:abba",
    "m:ü*",
    "n:1\n2",
]
PIECES = [
    "memory.",
    "space:",
    "e",
    "g",
    "%",
    "_",
    "\\",
    "*",
    "*",
    "x:",
    "ab",
    "ba",
    "m:",
    "ü",
    "n:1",
    "\n",
    "owner:",
    "bob",
    "",
]

Corpus = list[tuple[str, str, list[str]]]


@pytest.fixture(scope="module")
async def corpus(module_pool: Pool) -> AsyncIterator[Corpus]:
    async with connection(module_pool) as conn:
        for number, first in enumerate(TAGS):
            second = TAGS[(number * 3 + 1) % len(TAGS)]
            await seed.document(conn, creator="alice", tags=["memory.owner:alice", first])
            await seed.document(conn, creator="bob", tags=["memory.owner:bob", second])
            await seed.document(conn, creator="carol", tags=["memory.owner:carol", "memory.owner:bob", first, second])
        rows = await conn.fetch("SELECT id, created_by_principal_id, access_tags FROM memory.document")
    yield [(row["id"], row["created_by_principal_id"], row["access_tags"]) for row in rows]


patterns = st.one_of(
    st.sampled_from(TAGS),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join),
    st.sampled_from(["*", "memory.*", "memory.owner:bob", "memory.owner:*"]),
)
rules_strategy = st.lists(
    st.builds(
        lambda pattern, action, effect: seed.allow("bob", pattern, action, effect),
        patterns,
        st.sampled_from(["search", "*", "s*", "add"]),
        st.sampled_from([GrantEffect.ALLOW, GrantEffect.ALLOW, GrantEffect.DENY, GrantEffect.ASK]),
    ),
    max_size=8,
)


async def _found(pool: Pool, visibility: Visibility) -> set[str]:
    params: list[object] = [seed.TENANT]
    condition = predicate(visibility.scope, params)
    async with connection(pool) as conn:
        rows = await conn.fetch(f"SELECT d.id FROM memory.document d WHERE d.tenant_id = $1 AND {condition}", *params)
    return {row["id"] for row in rows}


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rules=st.one_of(st.none(), rules_strategy))
async def test_inv_26_sql_predicate_never_hides(
    module_pool: Pool, corpus: Corpus, rules: list[GrantRule] | None
) -> None:
    visibility = Visibility(Caller(seed.TENANT, "bob"), rules, datetime.now(UTC))
    shown = {document for document, creator, tags in corpus if visibility.sees(creator, tags)}
    assert shown <= await _found(module_pool, visibility)


async def test_inv_26_many_globs_still_hide_nothing(module_pool: Pool, corpus: Corpus) -> None:
    globs = [f"memory.space:{n}*" for n in range(MAX_LIKE_PATTERNS)] + ["memory.space:e*"]
    visibility = Visibility(Caller(seed.TENANT, "bob"), [seed.allow("bob", glob) for glob in globs], datetime.now(UTC))
    shown = {document for document, creator, tags in corpus if visibility.sees(creator, tags)}
    found = await _found(module_pool, visibility)
    assert shown <= found
    assert len(found) < len(corpus)


async def test_predicate_narrows(module_pool: Pool, corpus: Corpus) -> None:
    visibility = Visibility(Caller(seed.TENANT, "bob"), [seed.allow("bob", "memory.space:e_g")], datetime.now(UTC))
    shown = {document for document, creator, tags in corpus if visibility.sees(creator, tags)}
    assert await _found(module_pool, visibility) == shown
    assert 0 < len(shown) < len(corpus)


async def test_exact_tags_are_served_by_the_tag_index(module_pool: Pool, corpus: Corpus) -> None:
    visibility = Visibility(Caller(seed.TENANT, "bob"), [seed.allow("bob", "memory.space:eng")], datetime.now(UTC))
    params: list[object] = [seed.TENANT]
    condition = predicate(visibility.scope, params)
    async with connection(module_pool) as conn:
        undone = conn.transaction()
        await undone.start()
        await conn.execute(
            """
            INSERT INTO memory.document (id, tenant_id, adapter, external_ref, title, kind, access_tags,
                                         created_by_principal_id, created_at, last_seen_at)
            SELECT 'kdoc_' || n, $1, 'http', n::text, '', 'note', ARRAY['memory.owner:' || n], n::text, now(), now()
            FROM generate_series(1, 20000) n
            """,
            seed.TENANT,
        )
        await conn.execute("ANALYZE memory.document")
        statement = f"EXPLAIN SELECT d.id FROM memory.document d WHERE d.tenant_id = $1 AND {condition}"
        plan = "\n".join(row[0] for row in await conn.fetch(statement, *params))
        await undone.rollback()
    assert "document_tags" in plan
    assert "Seq Scan" not in plan
