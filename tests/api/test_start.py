"""When the facade starts, when it refuses to, and what it says while a neighbour is down."""

import httpx
import pytest
from fastapi import FastAPI

from api import serving
from api.app import app_from_environment, create_app
from api.identity import IdentityNotConfigured
from api.serving import CannotStart
from memory_plane.plane import health
from memory_plane.settings import Settings
from tests.api.conftest import by_header, running
from tests.api.relay import relay_to
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.database import settings_for

NO_TEMPORAL = "127.0.0.1:1"


def configured(dsn: str, **values: object) -> FastAPI:
    return create_app(settings_for(dsn, temporal_address=NO_TEMPORAL, **values), caller_resolver=by_header)


def client_of(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://facade", headers={"Authorization": "Bearer t/ann"}
    )


async def checks(client: httpx.AsyncClient) -> tuple[int, dict[str, str]]:
    answer = await client.get("/readyz")
    return answer.status_code, {name: part["state"] for name, part in answer.json()["checks"].items()}


def test_without_an_identity_choice_it_does_not_start(settings: Settings) -> None:
    with pytest.raises(IdentityNotConfigured, match="MEMORY_AUTH"):
        create_app(settings)


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [({}, "DATABASE_URL"), ({"DATABASE_URL": "postgresql://x/y"}, "MEMORY_AUTH")],
)
def test_the_factory_ends_with_a_sentence(
    environment: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.chdir(str(tmp_path))
    for name in ("DATABASE_URL", "MEMORY_AUTH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=sentence):
        app_from_environment()


async def test_another_language_than_the_databases_stops_the_start(database: str) -> None:
    with pytest.raises(CannotStart, match="FTS_LANGUAGE is german and the database was migrated with english"):
        async with running(configured(database, fts_language="german")):
            pass


async def test_a_database_without_tables_stops_the_start(empty_database: str) -> None:
    with pytest.raises(CannotStart, match="run memory migrate"):
        async with running(configured(empty_database)):
            pass


async def test_a_database_that_refuses_us_is_waited_for_like_one_that_is_down(database: str) -> None:
    """It may be about to be made, or its password about to be rotated; who looks at /readyz sees that it is missing."""
    for dsn in (database.replace("/t_", "/none_"), database.replace("postgres:", "nobody:")):
        async with running(configured(dsn)) as app, client_of(app) as client:
            assert (await client.get("/healthz")).status_code == 200
            status, states = await checks(client)
            assert (status, states["database"]) == (503, "down")


async def test_a_start_while_the_database_is_down_waits_for_it(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "RETRY_SECONDS", 0.01)
    async with (
        relay_to(database, is_open=False) as (relay, dsn),
        running(configured(dsn)) as app,
        client_of(app) as client,
    ):
        assert (await client.get("/healthz")).status_code == 200
        status, states = await checks(client)
        assert (status, states["database"], states["fts_language"]) == (503, "down", "down")
        refused = await client.get("/api/tenants/t/memory/list")
        assert (refused.status_code, refused.json()["code"]) == (503, "starting")
        assert int(refused.headers["retry-after"]) >= 1
        await relay.open()

        async def served() -> bool:
            return (await client.get("/api/tenants/t/memory/list")).status_code == 403

        await eventually(served)
        assert (await checks(client))[0] == 200


async def test_a_database_of_another_language_that_comes_back_later_is_not_served_from(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "RETRY_SECONDS", 0.01)
    async with (
        relay_to(database, is_open=False) as (relay, dsn),
        running(configured(dsn, fts_language="german")) as app,
        client_of(app) as client,
    ):
        await relay.open()

        async def told() -> bool:
            return "FTS_LANGUAGE is german" in caplog.text

        await eventually(told)
        status, states = await checks(client)
        assert (status, states["database"], states["fts_language"]) == (503, "up", "mismatch")
        assert (await client.get("/api/tenants/t/memory/list")).status_code == 503


async def test_a_database_that_goes_and_comes_back_needs_no_restart(database: str) -> None:
    async with relay_to(database) as (relay, dsn), running(configured(dsn)) as app, client_of(app) as client:
        assert (await client.get("/api/tenants/t/memory/list")).status_code == 403
        await relay.close()
        assert (await client.get("/healthz")).status_code == 200
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["retry-after"]
        refused = await client.get("/api/tenants/t/memory/list")
        assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
        assert refused.headers["retry-after"]
        await relay.open()

        async def served() -> bool:
            return (await client.get("/api/tenants/t/memory/list")).status_code == 403

        await eventually(served)
        assert (await checks(client))[0] == 200


async def test_neither_temporal_nor_a_model_endpoint_is_needed_to_be_ready(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "KEPT_FOR", 0.0)
    async with FakeEndpoint(dims=64) as fake:
        app = configured(database, embed_base_url=fake.url, embed_model="m", rerank_base_url="http://127.0.0.1:1")
        async with running(app), client_of(app) as client:
            status, states = await checks(client)
            assert status == 200
            assert states == {
                "database": "up",
                "fts_language": "up",
                "live_recipes": "up",
                "temporal": "down",
                "embed": "up",
                "rerank": "down",
            }
