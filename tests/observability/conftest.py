"""The composed worker of the workflow tests, and a facade with an embedding endpoint of the test's own."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from api.app import create_app
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from tests.api.conftest import Facade, by_header, running
from tests.workflows.conftest import client, configured, engine, fake, starter, workers

__all__ = ["client", "configured", "engine", "fake", "starter", "workers"]


@pytest.fixture
async def facade(configured: Settings) -> AsyncIterator[Facade]:
    """No Temporal; nobody may do anything yet."""
    async with Engine.open(configured) as opened:
        await opened.embedding.ensure_engine_model()
        async with running(create_app(engine=opened, caller_resolver=by_header)) as app:
            yield Facade(app, opened, f"t-{uuid4().hex[:12]}")
