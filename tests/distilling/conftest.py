"""A tenant with notes, and a distiller whose chat endpoint is a fake."""

from collections.abc import AsyncIterator

import pytest

from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from tests.distilling.notes import Notes, Scribe
from tests.fakes.endpoint import FakeEndpoint


@pytest.fixture
async def fake() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(dims=64) as endpoint:
        endpoint.chat_answer = Scribe()
        yield endpoint


@pytest.fixture
def configured(settings: Settings, fake: FakeEndpoint) -> Settings:
    return settings.model_copy(
        update={"distill_base_url": fake.url, "distill_model": "fake", "distill_timeout_ms": 3000}
    )


@pytest.fixture
async def engine(configured: Settings) -> AsyncIterator[Engine]:
    async with Engine.open(configured) as opened:
        yield opened


@pytest.fixture
async def notes(engine: Engine) -> Notes:
    return await Notes.of(engine, "acme")
