"""Fifty searches a second while the pointer moves back and forth, and adds, supersedes and forgets go on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

import pytest

from memory_plane.plane import search_rank
from memory_plane.plane.engine import Engine
from memory_plane.store import search_rows
from memory_plane.store.database import Connection
from tests.fakes.endpoint import FakeEndpoint
from tests.generations.conftest import configured
from tests.generations.world import Tenant

PER_SECOND = 50
AT_ONCE = 12
"""Of which a machine that is too slow for the rate has so many under way, and no queue for connections."""
SEARCHES = 300
WRITERS = 2
KEPT = 20


@pytest.fixture
async def engine(module_database: str, fake: FakeEndpoint) -> AsyncIterator[Engine]:
    """One that gives up nothing for want of time: what a deadline leaves out of a page is proved elsewhere."""
    patient = {"search_deadline_ms": 30_000, "embed_timeout_ms": 30_000, "db_pool_max": 16}
    async with Engine.open(configured(module_database, fake).model_copy(update=patient)) as opened:
        await opened.embedding.ensure_engine_model()
        yield opened


@pytest.fixture
async def tenant(engine: Engine) -> Tenant:
    opened = Tenant(engine, "acme")
    await opened.allow("ann")
    return opened


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
    room = asyncio.Semaphore(AT_ONCE)
    searched: list[set[str]] = []

    async def search() -> None:
        try:
            answer = await tenant.search("otter mill", limit=50)
        finally:
            room.release()
        assert answer.degraded is None
        searched.append({item.document_id for item in answer.items})

    async def searches() -> None:
        async with asyncio.TaskGroup() as group:
            while not over.is_set():
                await room.acquire()
                group.create_task(search())
                await pause(over)

    async def write(writer: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            added = await tenant.add(f"the heron {writer} {number} stands", external_ref=f"w{writer}-{number % 5}")
            if number % 4 == 0:
                await tenant.forget(added.document_id)

    async with asyncio.TaskGroup() as load:
        load.create_task(searches())
        for number in range(WRITERS):
            load.create_task(write(number))
        moves = 0
        while moves < 5 or len(searched) < SEARCHES:
            await tenant.cutover("demote" if moves % 2 else "promote", staged)
            moves += 1
        over.set()
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


async def pause(over: asyncio.Event) -> None:
    """The rate of the load, not a wait for anything."""
    try:
        await asyncio.wait_for(over.wait(), 1 / PER_SECOND)
    except TimeoutError:
        return
