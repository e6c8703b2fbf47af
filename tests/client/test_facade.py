"""The client against the real facade over a real socket, sync and async."""

from collections.abc import Iterator
from typing import Any

import pytest

from api.app import create_app
from memory_plane.client import AsyncMemoryClient, MemoryClient
from memory_plane.contracts.errors import Forbidden, Invalid, KeyReused, NotFound, Unauthenticated
from memory_plane.contracts.wire import Share
from tests.api.conftest import Facade, by_header, service
from tests.api.server import served
from tests.fixtures.database import settings_for

__all__ = ["service"]


@pytest.fixture(scope="module")
async def grants(service: tuple[Any, Any]) -> None:
    for tenant in ("sync", "async", "refused"):
        await Facade(*service, tenant=tenant).allow("ann")


@pytest.fixture(scope="module")
def url(module_database: str, grants: None) -> Iterator[str]:
    app = create_app(settings_for(module_database, temporal_address="127.0.0.1:1"), caller_resolver=by_header)
    with served(app) as address:
        yield address


def test_a_walk_through_every_verb(url: str) -> None:
    with MemoryClient(url, "sync", "sync/ann") as memory:
        added = memory.add("Standup", "We ship the parser on Friday.", kind="decision", share=Share(tenant=True))
        assert memory.add("Standup", "We ship the parser on Friday.").document_id != added.document_id
        hit = memory.search("when do we ship the parser?", kinds=["decision"]).items[0]
        assert hit.document_id == added.document_id
        assert hit.attribution is not None
        assert memory.get(added.document_id).text == "We ship the parser on Friday."
        outcomes = list(memory.add_many([{"title": f"N{n}", "text": "x"} for n in range(7)], batch_size=3))
        assert [outcome.index for outcome in outcomes] == list(range(7))
        assert all(outcome.status == "captured" for outcome in outcomes)
        assert len(list(memory.list_all(page_size=4))) == 9
        pages = list(memory.feed_pages(limit=4))
        assert [len(page.entries) for page in pages] == [4, 4, 1]
        assert pages[0].entries[0].version_id == added.version_id
        assert [event.event.value for page in memory.feed_event_pages() for event in page.entries] == ["captured"] * 9
        assert memory.set_retention_class(added.version_id, "durable").status.value == "active"
        assert not memory.purge(added.document_id).deleted
        assert memory.forget(added.document_id, reason="asked to").versions == 1
        assert memory.get(added.document_id).text is None
        assert memory.purge(added.document_id).deleted
        with pytest.raises(NotFound):
            memory.get(added.document_id)


async def test_the_async_client_walks_the_same_way(url: str) -> None:
    async with AsyncMemoryClient(url, "async", "async/ann") as memory:
        added = await memory.add("T", "cut \ud83d in half", idempotency_key="k")
        assert (await memory.add("T", "cut \ud83d in half", idempotency_key="k")).version_id == added.version_id
        with pytest.raises(KeyReused):
            await memory.add("T", "another", idempotency_key="k")
        assert (await memory.get(added.document_id)).text == "cut \ufffd in half"
        assert [event.document_id async for event in memory.list_all()] == [added.document_id]
        assert [len(page.entries) async for page in memory.feed_pages()] == [1]
        outcomes = [item async for item in memory.add_many([{"title": "", "text": "x"}, {"title": "T2", "text": "x"}])]
        assert [outcome.error is None for outcome in outcomes] == [False, True]


def test_refusals_are_typed(url: str) -> None:
    with MemoryClient(url, "refused", "refused/ann") as memory:
        with pytest.raises(Invalid) as caught:
            memory.add("T", "x", access_tags=["memory"])
        assert caught.value.request_id
        with pytest.raises(Invalid, match="acess_tags"):
            memory.add("T", "x", acess_tags=[])  # type: ignore[call-arg]
    with MemoryClient(url, "refused", "refused/bob") as memory, pytest.raises(Forbidden, match="memory:search"):
        memory.search("q")
    with MemoryClient(url, "refused", "nobody") as memory, pytest.raises(Unauthenticated):
        memory.search("q")
