"""The circuit breaker, on a clock that moves when told to."""

from __future__ import annotations

import asyncio

import pytest

from memory_plane.models.breaker import Breaker
from memory_plane.models.errors import BadReply, EndpointUnavailable
from tests.models.conftest import Clock


def state(breaker: Breaker) -> str:
    return breaker.state


def fail(breaker: Breaker, retry_after: float | None = None) -> None:
    with pytest.raises(EndpointUnavailable, match="down"), breaker.guard():
        raise EndpointUnavailable("down", retry_after=retry_after)


def succeed(breaker: Breaker) -> None:
    with breaker.guard():
        pass


def refused(breaker: Breaker) -> EndpointUnavailable:
    with pytest.raises(EndpointUnavailable, match="left alone") as raised, breaker.guard():
        pytest.fail("a call was let through")
    return raised.value


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("host:1", threshold=3, cool_down=1.0, max_cool_down=5.0, clock=clock)


def test_three_failures_in_a_row_open_it(breaker: Breaker) -> None:
    fail(breaker)
    fail(breaker)
    succeed(breaker)
    fail(breaker)
    fail(breaker)
    assert state(breaker) == "closed"
    fail(breaker)
    assert state(breaker) == "open"
    assert refused(breaker).retry_after == 1.0


def test_a_bad_reply_counts_as_well(breaker: Breaker) -> None:
    for _ in range(3):
        with pytest.raises(BadReply), breaker.guard():
            raise BadReply("nonsense")
    assert state(breaker) == "open"


def test_after_the_pause_one_probe_goes_through_and_closes_it(breaker: Breaker, clock: Clock) -> None:
    for _ in range(3):
        fail(breaker)
    clock.now += 1.0
    assert state(breaker) == "half_open"
    with breaker.guard():
        assert state(breaker) == "half_open"
        refused(breaker)
    assert state(breaker) == "closed"
    assert breaker.retry_in == 0.0
    fail(breaker)
    assert state(breaker) == "closed", "a probe that worked forgets the failures before it"


def test_every_failed_probe_doubles_the_pause_up_to_its_limit(breaker: Breaker, clock: Clock) -> None:
    for _ in range(3):
        fail(breaker)
    pauses = []
    for _ in range(5):
        pauses.append(breaker.retry_in)
        clock.now += breaker.retry_in
        fail(breaker)
    assert pauses == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_an_outage_may_last_for_days(breaker: Breaker, clock: Clock) -> None:
    for _ in range(2000):
        clock.now += breaker.retry_in
        fail(breaker)
    assert breaker.retry_in == 5.0


def test_retry_after_opens_at_once_and_for_as_long_as_it_says(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, retry_after=30.0)
    clock.now += 29.0
    assert refused(breaker).retry_after == 1.0
    clock.now += 1.0
    succeed(breaker)
    assert state(breaker) == "closed"


def test_a_cancelled_probe_is_no_verdict_and_frees_the_place(breaker: Breaker, clock: Clock) -> None:
    for _ in range(3):
        fail(breaker)
    clock.now += 1.0
    with pytest.raises(asyncio.CancelledError), breaker.guard():
        raise asyncio.CancelledError
    assert state(breaker) == "half_open"
    succeed(breaker)
    assert state(breaker) == "closed"


def test_late_failures_of_calls_begun_before_do_not_lengthen_the_pause(breaker: Breaker) -> None:
    guards = [breaker.guard() for _ in range(6)]
    for guard in guards:
        guard.__enter__()
    for guard in guards:
        error = EndpointUnavailable("down")
        assert not guard.__exit__(type(error), error, None)
    assert breaker.retry_in == 1.0
