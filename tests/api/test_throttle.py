"""Too much is refused at the door: one caller's too often with 429, everybody's too many with 503, each with a time."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from api.app import create_app
from api.throttle import CallerLimit, Room
from memory_plane.contracts.errors import Throttled, Unavailable
from memory_plane.core.caller import Caller
from memory_plane.plane.engine import Engine
from tests.api.conftest import Facade, by_header, running
from tests.fixtures.database import settings_for

ANN, BOB = Caller("t", "ann"), Caller("t", "bob")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def takes(limit: CallerLimit, caller: Caller, times: int) -> int:
    """How many of so many requests were let in."""
    let_in = 0
    for _ in range(times):
        try:
            limit.take(caller)
        except Throttled:
            continue
        let_in += 1
    return let_in


def test_a_caller_has_a_burst_and_then_its_rate_and_no_part_in_anothers() -> None:
    clock = Clock()
    limit = CallerLimit(2, 5, clock)
    assert takes(limit, ANN, 10) == 5
    assert takes(limit, BOB, 10) == 5
    clock.now = 1.0
    assert takes(limit, ANN, 10) == 2
    clock.now = 1_000.0
    assert takes(limit, ANN, 10) == 5, "rest does not save up more than a burst"


def test_a_refusal_says_when_there_is_a_token_again() -> None:
    clock = Clock()
    limit = CallerLimit(0.25, 1, clock)
    limit.take(ANN)
    with pytest.raises(Throttled) as refused:
        limit.take(ANN)
    assert refused.value.retry_after == 4
    clock.now = 4.0
    limit.take(ANN)


def test_refused_requests_cost_no_tokens() -> None:
    clock = Clock()
    limit = CallerLimit(1, 1, clock)
    takes(limit, ANN, 100)
    clock.now = 1.0
    assert takes(limit, ANN, 1) == 1


def test_a_place_is_given_back_whatever_happens() -> None:
    room = Room(1)
    with pytest.raises(RuntimeError), room.place():
        with pytest.raises(Unavailable), room.place():
            pass
        raise RuntimeError
    with room.place():
        pass
    assert room.taken == 0


@pytest.fixture(scope="module")
async def strict(module_database: str) -> AsyncIterator[tuple[FastAPI, Engine]]:
    """A facade that lets each caller ask twice, and then every thousand seconds."""
    settings = settings_for(module_database, memory_requests_per_second=0.001, memory_requests_burst=2)
    async with (
        Engine.open(settings) as engine,
        running(create_app(engine=engine, caller_resolver=by_header)) as app,
    ):
        yield app, engine


async def test_beyond_its_rate_a_caller_is_told_429_and_health_is_not_counted(
    strict: tuple[FastAPI, Engine],
) -> None:
    facade = Facade(*strict, tenant=f"t-{uuid4().hex[:12]}")
    await facade.allow("ann")
    await facade.allow("bob")
    async with facade.caller() as ann, facade.caller("bob") as bob, facade.caller(path="") as anybody:
        answers = [await ann.get("/list") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
        assert answers[-1].json()["code"] == "throttled"
        assert int(answers[-1].headers["retry-after"]) > 900
        assert (await bob.get("/list")).status_code == 200
        assert {(await anybody.get("/healthz")).status_code for _ in range(5)} == {200}


async def test_a_stranger_is_401_and_costs_nobody_a_token(strict: tuple[FastAPI, Engine]) -> None:
    facade = Facade(*strict, tenant=f"t-{uuid4().hex[:12]}")
    async with facade.caller(None) as nobody:
        assert {(await nobody.get("/list")).status_code for _ in range(5)} == {401}


async def test_without_a_setting_nobody_is_throttled(ann: httpx.AsyncClient) -> None:
    assert {(await ann.get("/list")).status_code for _ in range(50)} == {200}


async def test_more_requests_than_there_are_places_are_told_503_and_the_places_come_back(
    facade: Facade, ann: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()
    listing = type(facade.engine.library).list

    async def slow(*given: object) -> object:
        entered.set()
        await leave.wait()
        return await listing(*given)  # type: ignore[arg-type]

    room = facade.app.state.memory_door.room
    monkeypatch.setattr(room, "places", 1)
    monkeypatch.setattr(type(facade.engine.library), "list", slow)
    first = asyncio.create_task(ann.get("/list"))
    await entered.wait()
    refused = await ann.get("/list")
    assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (503, "overloaded", "1")
    async with facade.caller(path="") as anybody:
        assert (await anybody.get("/healthz")).status_code == 200
    leave.set()
    assert (await first).status_code == 200
    assert (await ann.get("/list")).status_code == 200
    assert room.taken == 0
