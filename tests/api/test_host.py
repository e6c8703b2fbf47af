"""The routes on a host's app: its own routes, error handlers and middleware stay as they are."""

import httpx
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from api.app import register_memory_routes
from memory_plane.plane.engine import Engine
from tests.api.conftest import Facade, by_header


async def test_a_host_mounts_the_routes_beside_its_own(service: tuple[FastAPI, Engine]) -> None:
    host = FastAPI()

    @host.get("/own/{number}")
    async def own(number: int) -> int:
        return number

    @host.exception_handler(404)
    async def lost(request: Request, error: Exception) -> PlainTextResponse:
        return PlainTextResponse("the host's own 404", 404)

    register_memory_routes(host, service[1], by_header)
    facade = Facade(host, service[1], "hosted")
    await facade.allow("ann")
    async with facade.caller() as ann, facade.caller(path="") as root:
        added = await ann.post("/add", json={"title": "T", "text": "x"})
        assert added.status_code == 200, added.text
        assert added.headers["x-request-id"]
        refused = await ann.post("/add", json={"title": "T"})
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.headers["x-request-id"]
        missing = await ann.get("/documents/kdoc_none")
        assert missing.json()["code"] == "not_found"
        assert (await root.get("/own/7")).json() == 7
        assert (await root.get("/own/seven")).status_code == 422
        assert (await root.get("/nothing")).text == "the host's own 404"
        document = (await root.get("/openapi.json")).json()
    assert "422" in document["paths"]["/own/{number}"]["get"]["responses"]
    assert "HTTPValidationError" in document["components"]["schemas"]
    assert "Problem" in document["components"]["schemas"]
    assert "security" not in document["paths"]["/own/{number}"]["get"]


async def test_a_resolver_that_fails_or_seats_nobody_real_is_500_and_not_told(
    service: tuple[FastAPI, Engine], caplog: object
) -> None:
    from starlette.requests import HTTPConnection

    from memory_plane.core.caller import Caller

    async def blank(request: HTTPConnection) -> Caller:
        return Caller("hosted", "  ")

    async def broken(request: HTTPConnection) -> Caller:
        raise LookupError("secret-of-the-host")

    for resolver in (blank, broken):
        host = FastAPI()
        register_memory_routes(host, service[1], resolver)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(host), base_url="http://h") as client:
            answer = await client.get("/api/tenants/hosted/memory/list")
        assert answer.status_code == 500
        assert "secret" not in answer.text
