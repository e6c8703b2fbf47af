"""Live sources asked by the search itself: one answers, one is slow, one fails, and the memory answers anyway."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from memory_plane.contracts.enums import Evidence
from memory_plane.core.caller import Caller
from memory_plane.core.live_sources import LiveHit
from memory_plane.plane.engine import Engine
from tests.fixtures.database import settings_for
from tests.search.world import World


@dataclass
class Answering:
    id: str
    hits: Sequence[LiveHit] = ()
    asked: list[tuple[str, str, str, int]] = field(default_factory=list)

    async def search_live(self, caller: Caller, query: str, limit: int) -> Sequence[LiveHit]:
        self.asked.append((caller.tenant_id, caller.principal_id, query, limit))
        return self.hits


@dataclass
class Never:
    id: str
    cancelled: bool = False

    async def search_live(self, caller: Caller, query: str, limit: int) -> Sequence[LiveHit]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return ()


@dataclass
class Failing:
    id: str

    async def search_live(self, caller: Caller, query: str, limit: int) -> Sequence[LiveHit]:
        raise RuntimeError("the mailbox has moved, and this text must not be in a log")


def mail(ref: str, title: str, score: float, *, at: datetime | None = None) -> LiveHit:
    return LiveHit(
        adapter="mail", external_ref=ref, title=title, snippet=f"all of {title}", score=score, occurred_at=at
    )


@dataclass(frozen=True)
class Hosted:
    world: World
    mailbox: Answering
    tickets: Never
    wiki: Failing


@pytest.fixture
async def hosted(module_database: str) -> AsyncIterator[Hosted]:
    mailbox, tickets, wiki = Answering("mailbox"), Never("tickets"), Failing("wiki")
    async with Engine.open(settings_for(module_database), sources=[mailbox, tickets, wiki]) as engine:
        world = World(engine, f"t-{uuid4().hex[:12]}")
        await world.allow("ann")
        yield Hosted(world, mailbox, tickets, wiki)


async def test_a_sources_hits_stand_among_the_memorys(hosted: Hosted) -> None:
    best = await hosted.world.add("The reactor is cooled with sodium.", title="reactor")
    hosted.mailbox.hits = [mail("1", "fresh", 40.0, at=datetime.now(UTC)), mail("2", "stale", 4.0)]
    response = await hosted.world.search("reactor sodium", sources=["local", "mailbox"], limit=10)
    assert [item.title for item in response.items] == ["fresh", "reactor", "stale"] or [
        item.title for item in response.items
    ] == ["reactor", "fresh", "stale"]
    by_title = {item.title: item for item in response.items}
    assert by_title["reactor"].document_id == best.document_id
    live = by_title["fresh"]
    assert (live.document_id, live.snippet, live.attribution) == ("mail:1", "all of fresh", None)
    assert (live.citation.adapter, live.citation.external_ref) == ("mail", "1")
    scores = [item.score for item in response.items]
    assert scores == sorted(scores, reverse=True)
    assert response.evidence is Evidence.WEAK, "nobody vouches for a live hit"
    assert hosted.mailbox.asked == [(hosted.world.tenant, "ann", "reactor sodium", 10)]


async def test_the_memorys_copy_of_a_live_hit_is_the_one_shown(hosted: Hosted) -> None:
    kept = await hosted.world.add("The reactor is cooled with sodium.", title="kept", adapter="mail", external_ref="1")
    hosted.mailbox.hits = [mail("1", "live copy", 1.0)]
    response = await hosted.world.search("reactor sodium", sources=["local", "mailbox"])
    assert [item.document_id for item in response.items] == [kept.document_id]


async def test_the_page_is_cut_after_the_merge(hosted: Hosted) -> None:
    for number in range(3):
        await hosted.world.add(f"The reactor is cooled with sodium {number}.")
    hosted.mailbox.hits = [mail(str(number), f"mail {number}", 1.0) for number in range(3)]
    response = await hosted.world.search("reactor sodium", sources=["local", "mailbox"], limit=4)
    assert len(response.items) == 4
    assert any(item.document_id.startswith("mail:") for item in response.items)


async def test_inv_13_a_slow_source_and_a_broken_one_are_named_and_the_memory_answers(
    hosted: Hosted, caplog: pytest.LogCaptureFixture
) -> None:
    await hosted.world.add("The reactor is cooled with sodium.", title="reactor")
    hosted.mailbox.hits = [mail("1", "fresh", 1.0)]
    response = await hosted.world.search("reactor sodium")
    assert {item.title for item in response.items} == {"reactor", "fresh"}
    assert set(response.degraded or ()) >= {"live_timeout", "live_error"}
    assert hosted.tickets.cancelled
    assert "must not be in a log" not in caplog.text


async def test_inv_14_none_where_neither_the_memory_nor_a_source_has_a_hit(hosted: Hosted) -> None:
    response = await hosted.world.search("reactor sodium", sources=["local", "mailbox"])
    assert (response.items, response.evidence) == ([], Evidence.NONE)


async def test_a_source_alone_is_asked_without_the_memory(hosted: Hosted) -> None:
    await hosted.world.add("The reactor is cooled with sodium.", title="reactor")
    hosted.mailbox.hits = [mail("1", "fresh", 1.0)]
    response = await hosted.world.search("reactor sodium", sources=["mailbox"])
    assert [item.title for item in response.items] == ["fresh"]
    assert response.degraded is None
