"""Searching without a pause while the pointer moves back and forth, and adds, supersedes and forgets go on."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

import pytest

from memory_plane.plane import search_rank
from memory_plane.store import search_rows
from memory_plane.store.database import Connection
from tests.generations.world import Tenant

SEARCHERS = 4
WRITERS = 2
KEPT = 20


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The chunks of each page that is ranked."""
    seen: list[list[str]] = []
    page_rows: Callable[..., Any] = search_rows.page_rows

    async def watched(conn: Connection, tenant_id: str, chunk_ids: Collection[str], *more: Any) -> Any:
        seen.append(list(chunk_ids))
        return await page_rows(conn, tenant_id, chunk_ids, *more)

    monkeypatch.setattr(search_rank, "page_rows", watched)
    return seen


async def test_inv_17_no_page_is_empty_or_mixed_while_the_pointer_moves(tenant: Tenant, pages: list[list[str]]) -> None:
    kept = {(await tenant.add(f"the otter swims past mill {n}", external_ref=f"k{n}")).document_id for n in range(KEPT)}
    staged = await tenant.staged()
    over = asyncio.Event()
    searched: list[set[str]] = []

    async def search() -> None:
        while not over.is_set():
            answer = await tenant.search("otter mill", limit=50)
            assert answer.degraded is None
            searched.append({item.document_id for item in answer.items})

    async def write(writer: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            added = await tenant.add(f"the heron {writer} {number} stands", external_ref=f"w{writer}-{number % 5}")
            if number % 4 == 0:
                await tenant.forget(added.document_id)

    load = [asyncio.create_task(search()) for _ in range(SEARCHERS)]
    load += [asyncio.create_task(write(n)) for n in range(WRITERS)]
    try:
        for kind in ("promote", "demote", "promote", "demote", "promote"):
            await tenant.cutover(kind, staged)
    finally:
        over.set()
        await asyncio.gather(*load)
    assert len(searched) > 50
    assert [page for page in searched if not kept <= page] == []
    generations = {
        row["id"]: row["generation_id"]
        for row in await tenant.engine.pool.fetch(
            "SELECT id, generation_id FROM memory.chunk WHERE tenant_id = $1", tenant.tenant
        )
    }
    used = [{generations[chunk] for chunk in page if chunk in generations} for page in pages]
    assert [each for each in used if len(each) > 1] == []
    assert len(set().union(*used)) == 2, "pages of both generations were served"
