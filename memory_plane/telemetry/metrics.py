"""Every metric of the process, in one registry. A host with an app of its own serves `REGISTRY` itself.

Labels have few values that are known beforehand: no tenant, no id, no address of a tenant's endpoint, no content.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)

HTTP_REQUESTS = Counter("memory_http_requests", "Answered requests.", ["method", "route", "status"], registry=REGISTRY)
HTTP_SECONDS = Histogram(
    "memory_http_request_seconds", "Time to the answer.", ["route"], buckets=_SECONDS, registry=REGISTRY
)
HTTP_UNDER_WAY = Gauge("memory_http_requests_under_way", "Requests being answered.", registry=REGISTRY)

VERBS = Counter("memory_verbs", "Verbs asked for, over HTTP and MCP alike.", ["verb", "outcome"], registry=REGISTRY)
DEGRADED = Counter(
    "memory_degraded", "Answers that named this flag in `degraded`.", ["verb", "flag"], registry=REGISTRY
)

SEARCHES = Counter("memory_searches", "Searches answered.", registry=REGISTRY)
SEARCH_STAGE_SECONDS = Histogram(
    "memory_search_stage_seconds", "Time in one stage of a search.", ["stage"], buckets=_SECONDS, registry=REGISTRY
)
SEARCH_CHANNEL = Counter(
    "memory_search_channel",
    "Searches of words whose page had something from this channel: lexical, dense or rerank.",
    ["channel"],
    registry=REGISTRY,
)

ENDPOINT_CALLS = Counter("memory_endpoint_calls", "Calls to model endpoints.", ["use", "outcome"], registry=REGISTRY)
ENDPOINT_SECONDS = Histogram(
    "memory_endpoint_seconds", "Time of one call to a model endpoint.", ["use"], buckets=_SECONDS, registry=REGISTRY
)
BREAKER_OPENED = Counter(
    "memory_breaker_opened", "Times that an endpoint was left alone after failures.", registry=REGISTRY
)
BREAKERS_NOT_CLOSED = Gauge(
    "memory_breakers_not_closed", "Model endpoints that are being left alone now.", registry=REGISTRY
)

DATABASE_CONNECTIONS_IN_USE = Gauge(
    "memory_database_connections_in_use", "Pooled connections at work.", registry=REGISTRY
)
DATABASE_CONNECTIONS_MAX = Gauge(
    "memory_database_connections_max", "Connections that the pools of this process may open.", registry=REGISTRY
)
DATABASE_WAITING = Gauge("memory_database_waiting", "Callers that wait for a connection.", registry=REGISTRY)
DATABASE_REFUSALS = Counter(
    "memory_database_refusals", "Callers that were told to come back, by reason.", ["reason"], registry=REGISTRY
)

EMBED_PENDING = Gauge(
    "memory_embed_pending", "Versions without their vectors under a live generation, counted to 100,000.",
    registry=REGISTRY,
)  # fmt: skip
EMBED_OLDEST_SECONDS = Gauge(
    "memory_embed_oldest_seconds", "Age of the oldest of them; 0 when there is none.", registry=REGISTRY
)
PROCESS_PENDING = Gauge(
    "memory_process_pending", "Requests of processors that have no outcome yet, counted to 100,000.", registry=REGISTRY
)
PROCESS_OLDEST_SECONDS = Gauge(
    "memory_process_oldest_seconds", "Age of the oldest of them; 0 when there is none.", registry=REGISTRY
)
FEED_LAG = Gauge(
    "memory_feed_lag", "Positions between the feed's end and its slowest consumer, over all tenants.", registry=REGISTRY
)
CUTOVER_LAG = Gauge(
    "memory_cutover_lag",
    "Positions that the generation furthest behind, of those being built or staged, has still to walk.",
    registry=REGISTRY,
)
BACKLOG_SEEN = Gauge(
    "memory_backlog_seen_timestamp_seconds", "When the backlog was last looked at; the worker does.", registry=REGISTRY
)


CONTRIBUTING = ("dense", "rerank")
silent_searches = dict.fromkeys(CONTRIBUTING, 0)
"""How many searches of words in a row had nothing from the channel: an outage that no single answer shows."""


def searched(
    stages: Mapping[str, float], degraded: Iterable[str], channels: Iterable[str], *, of_words: bool = True
) -> None:
    """One search was answered: seconds by stage, its flags, and the channels that its page came from.

    A search without words, which shows what is recent, asks no model and says nothing about the channels.
    """
    SEARCHES.inc()
    for stage, seconds in stages.items():
        SEARCH_STAGE_SECONDS.labels(stage).observe(seconds)
    degraded_answer("search", degraded)
    if not of_words:
        return
    contributed = set(channels)
    for channel in contributed:
        SEARCH_CHANNEL.labels(channel).inc()
    for channel in CONTRIBUTING:
        silent_searches[channel] = 0 if channel in contributed else silent_searches[channel] + 1


def degraded_answer(verb: str, flags: Iterable[str]) -> None:
    for flag in flags:
        DEGRADED.labels(verb, flag).inc()


@contextmanager
def endpoint_call(use: str) -> Iterator[None]:
    """Around one call to a model endpoint. What it raises names its outcome; a caller that gave up is `cancelled`."""
    outcome = "ok"
    with ENDPOINT_SECONDS.labels(use).time():
        try:
            yield
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except Exception as fault:
            outcome = _snake(type(fault).__name__)
            raise
        finally:
            ENDPOINT_CALLS.labels(use, outcome).inc()


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


class HasState(Protocol):
    @property
    def state(self) -> str: ...


_breakers: "WeakSet[HasState]" = WeakSet()


def watch_breaker(breaker: HasState) -> None:
    """Count it among those not closed for as long as it lives."""
    _breakers.add(breaker)


BREAKERS_NOT_CLOSED.set_function(lambda: sum(breaker.state != "closed" for breaker in list(_breakers)))
