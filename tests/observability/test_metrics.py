"""What the metrics say after work of every sort, and what they never say."""

import time
from typing import cast

import pytest

from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Unavailable
from memory_plane.models.breaker import Breaker
from memory_plane.models.errors import EndpointUnavailable
from memory_plane.plane import backlog
from memory_plane.plane.health import NOTICED_AFTER, Health
from memory_plane.store import database
from memory_plane.store.database import Pool, connection
from memory_plane.telemetry import metrics
from tests.api.conftest import Facade
from tests.canaries import CANARY
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Status


class Grown:
    """How much a sample has grown since this was made."""

    def __init__(self) -> None:
        self._before = self._now()

    def __call__(self, name: str, **labels: str) -> float:
        key = (name, tuple(sorted(labels.items())))
        return self._now().get(key, 0.0) - self._before.get(key, 0.0)

    @staticmethod
    def _now() -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in metrics.REGISTRY.collect()
            for sample in family.samples
        }


async def test_adds_and_searches_are_counted_by_verb_stage_channel_and_flag(facade: Facade, fake: FakeEndpoint) -> None:
    await facade.allow("ann", Verb.ADD, Verb.SEARCH)
    grown = Grown()
    async with facade.caller() as ann:
        await ann.post("/add", json={"title": CANARY, "text": f"{CANARY} lives by the harbour"})
        assert (await ann.post("/search", json={"query": "harbour"})).json()["items"]
        assert (await ann.post("/documents/kdoc_none/forget", json={"reason": "asked to"})).status_code == 403
        fake.fail(Status(503), on="embed")
        await ann.post("/search", json={"query": f"{CANARY} elsewhere"})
    async with facade.caller(None, path="") as nobody:
        shown = (await nobody.get("/metrics")).text
    assert grown("memory_verbs_total", verb="add", outcome="allowed") == 1
    assert grown("memory_verbs_total", verb="forget", outcome="refused") == 1
    assert grown("memory_searches_total") == 2
    assert grown("memory_search_channel_total", channel="dense") == 1
    assert grown("memory_search_stage_seconds_count", stage="lexical") == 2
    assert grown("memory_degraded_total", verb="search", flag="dense_unavailable") == 1
    assert grown("memory_endpoint_calls_total", use="embed", outcome="ok") >= 1
    assert grown("memory_endpoint_calls_total", use="embed", outcome="endpoint_unavailable") >= 1
    assert CANARY not in shown
    assert facade.tenant not in shown


async def test_a_channel_that_stays_silent_is_told_by_readiness(facade: Facade, fake: FakeEndpoint) -> None:
    health = cast(Health, facade.app.state.memory_health)
    assert (await health.check())["embed"].detail is None
    for _ in range(NOTICED_AFTER):
        metrics.searched({}, ["dense_unavailable"], ["lexical"])
    assert "nothing from it" in ((await health.check())["embed"].detail or "")
    metrics.searched({}, [], [])
    metrics.searched({}, [], ["lexical", "dense"])
    assert (await health.check())["embed"].detail is None


async def test_searches_without_words_say_nothing_about_channels() -> None:
    before = dict(metrics.silent_searches)
    metrics.searched({"start": 0.001}, [], ["recent"], of_words=False)
    assert metrics.silent_searches == before


async def test_a_pool_that_is_full_shows(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    grown = Grown()
    holding = [connection(pool) for _ in range(pool.get_max_size())]
    for each in holding:
        await each.__aenter__()
    assert grown("memory_database_connections_in_use") == pool.get_max_size()
    monkeypatch.setattr(database, "ACQUIRE_TIMEOUT", 0.05)
    with pytest.raises(Unavailable):
        async with connection(pool):
            pass
    for each in holding:
        await each.__aexit__(None, None, None)
    assert grown("memory_database_connections_in_use") == 0
    assert grown("memory_database_waiting") == 0
    assert grown("memory_database_refusals_total", reason="database_busy") == 1


def test_a_breaker_that_opens_shows_until_it_closes() -> None:
    now = 0.0
    grown = Grown()
    breaker = Breaker("endpoint", threshold=1, clock=lambda: now)

    def fails() -> None:
        with breaker.guard():
            raise EndpointUnavailable("down")

    with pytest.raises(EndpointUnavailable):
        fails()
    assert grown("memory_breaker_opened_total") == 1
    assert grown("memory_breakers_not_closed") == 1
    now = 60.0
    with breaker.guard():
        pass
    assert grown("memory_breakers_not_closed") == 0


async def test_the_backlog_and_the_lags_are_looked_at(facade: Facade, fake: FakeEndpoint) -> None:
    pool = facade.engine.pool
    await facade.allow("ann")
    fake.fail(Status(503), on="embed")
    async with facade.caller() as ann:
        for number in range(3):
            added = await ann.post("/add", json={"title": f"note {number}", "text": f"text number {number}"})
            assert added.status_code == 200
    async with connection(pool) as conn:
        await conn.execute("UPDATE memory.derivation SET updated_at = updated_at - interval '10 minutes'")
        await conn.execute(
            "INSERT INTO memory.consumer_cursor (tenant_id, consumer, position) "
            "VALUES ($1, 'slow', 1), ($1, 'fast', 3)",
            facade.tenant,
        )
    await backlog.look(pool)
    values = {family.name: family.samples[0].value for family in metrics.REGISTRY.collect() if family.type == "gauge"}
    assert values["memory_embed_pending"] == 3
    assert 600 <= values["memory_embed_oldest_seconds"] < 700
    assert values["memory_process_pending"] == 0
    assert values["memory_process_oldest_seconds"] == 0
    assert values["memory_feed_lag"] == 2
    assert values["memory_cutover_lag"] == 0
    assert time.time() - values["memory_backlog_seen_timestamp_seconds"] < 60
