"""A fake endpoint and an HTTP client for the tests of model clients."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from memory_plane.models.endpoint import http_client
from tests.fakes.endpoint import FakeEndpoint

DIMS = 64


@pytest.fixture
async def fake() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(dims=DIMS) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with http_client() as client:
        yield client


class Clock:
    """A clock that moves when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()
