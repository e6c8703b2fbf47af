"""Every route and every tool × {no identity, revoked, expired, other tenant, no capability, not visible, not owner}.

Generated from the OpenAPI document and the list of tools: what is added tomorrow is in the matrix, or fails here until
somebody says what a stranger may get of it.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from api.app import create_app
from api.token_identity import TokenResolver
from memory_plane.client.tools import TOOLS
from memory_plane.contracts.enums import Verb
from memory_plane.plane.engine import Engine
from memory_plane.store import grants, tokens
from memory_plane.store.database import connection
from tests.access.seed import allow
from tests.api.conftest import running
from tests.fixtures.database import settings_for

CANARY = "canary7f3a9"
UNKNOWN = {"documentId": "kdoc_0000", "versionId": "kver_0000"}

BODIES: dict[tuple[str, str], dict[str, Any] | None] = {
    ("post", "add"): {"title": "x", "text": "x", "external_ref": "alices-own"},
    ("post", "add/batch"): {"items": [{"title": "x", "text": "x", "external_ref": "alices-own"}]},
    ("post", "search"): {"query": CANARY, "includeDeprecated": True},
    ("get", "list"): None,
    ("get", "feed"): None,
    ("get", "documents/{documentId}"): None,
    ("post", "documents/{documentId}/forget"): {},
    ("post", "documents/{documentId}/purge"): None,
    ("post", "versions/{versionId}/retention-class"): {"retention_class": "ephemeral"},
}
"""A body that each route takes. A route that is not here fails the matrix."""
READS_ONE = {("get", "documents/{documentId}")}


@dataclass(frozen=True)
class Operation:
    method: str
    pattern: str
    verb: Verb

    @property
    def name(self) -> tuple[str, str]:
        return self.method, self.pattern.removeprefix("/api/tenants/{tenantId}/memory/")

    @property
    def is_of_one(self) -> bool:
        return "{" in self.name[1]


def operations() -> Iterator[Operation]:
    document = create_app(
        settings_for("postgresql://nowhere/none"),
        caller_resolver=TokenResolver(None),  # type: ignore[arg-type]
    ).openapi()
    for pattern, item in document["paths"].items():
        for method, operation in item.items():
            if "x-memory-grant" in operation:
                yield Operation(method, pattern, Verb(operation["x-memory-grant"].removeprefix("memory:")))


OPERATIONS = list(operations())
each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: "-".join(each.name))


@dataclass
class World:
    """alice has a private and a shared document; bob sees the shared one; carl sees nothing; poor may do nothing; eve
    may do everything in another tenant. All but poor hold every verb, and bob every other rule there could be."""

    app: FastAPI
    engine: Engine
    tokens: dict[str, str]
    private: dict[str, str]
    shared: dict[str, str]

    async def send(self, operation: Operation, who: str | None, ids: dict[str, str]) -> httpx.Response:
        path = operation.pattern.format(tenantId="t", **ids)
        return await self.request(operation.method, path, who, BODIES[operation.name])

    async def request(self, method: str, path: str, who: str | None, body: Any = None, **more: Any) -> httpx.Response:
        headers = {} if who is None else {"Authorization": f"Bearer {self.tokens.get(who, who)}"}
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://facade", headers=headers) as client:
            return await client.request(method, path, **({} if body is None else {"json": body}), **more)

    async def facts(self) -> list[tuple[Any, ...]]:
        """Everything that a request could have changed, but for the notes of when tokens were used."""
        tables = ("document", "version", "raw_capture", "chunk", "edge", "grant_rule", "feed_event", "idempotency_key")
        async with connection(self.engine.pool) as conn:
            return [tuple(row) for table in tables for row in await conn.fetch(f"SELECT t::text FROM memory.{table} t")]


@pytest.fixture(scope="module")
async def world(module_database: str) -> AsyncIterator[World]:
    settings = settings_for(module_database, memory_mcp_allow_forget=True)
    async with (
        Engine.open(settings) as engine,
        running(create_app(engine=engine, caller_resolver=TokenResolver(engine.pool, cache_seconds=0))) as app,
    ):
        made = World(app, engine, await _tokens(engine), {}, {})
        await _grants(engine)
        made.private = await _document(made, external_ref="alices-own")
        made.shared = await _document(made, share={"principals": ["bob"]})
        yield made


async def _tokens(engine: Engine) -> dict[str, str]:
    found = {}
    async with connection(engine.pool) as conn:
        for who in ("alice", "bob", "carl", "poor"):
            found[who], _ = await tokens.issue(conn, "t", who)
        found["eve"], _ = await tokens.issue(conn, "other", "alice")
        for who in ("revoked", "expired"):
            found[who], token = await tokens.issue(
                conn, "t", "alice", expires_at=datetime.now(UTC) + timedelta(hours=1)
            )
            if who == "revoked":
                await tokens.revoke(conn, token.id)
            else:
                await conn.execute("UPDATE memory.api_token SET expires_at = now() WHERE id = $1", token.id)
    return found | {"unknown": "mpt_unheard-of", "garbage": "no token at all"}


async def _grants(engine: Engine) -> None:
    async with connection(engine.pool) as conn:
        for tenant, who in (("t", "alice"), ("t", "bob"), ("t", "carl"), ("other", "alice")):
            await grants.put_rules(conn, tenant, [allow(who, "memory", verb.value) for verb in Verb])
        everything_but_sight = [allow("bob", "*", action) for action in ("forget", "purge", "operate")]
        await grants.put_rules(conn, "t", everything_but_sight)


async def _document(world: World, **fields: Any) -> dict[str, str]:
    body = {"title": CANARY, "text": f"{CANARY} text", "attributes": {"a": CANARY}, **fields}
    answer = await world.request("post", "/api/tenants/t/memory/add", "alice", body)
    assert answer.status_code == 200, answer.text
    return {"documentId": answer.json()["documentId"], "versionId": answer.json()["versionId"]}


@asynccontextmanager
async def nothing_changes(world: World) -> AsyncIterator[None]:
    before = await world.facts()
    yield
    assert await world.facts() == before


def test_every_operation_is_known_here() -> None:
    assert {operation.name for operation in OPERATIONS} == set(BODIES)
    assert {tool.name for tool in TOOLS} == set(ARGUMENTS)


@each_operation
@pytest.mark.parametrize("who", [None, "unknown", "garbage", "revoked", "expired"])
async def test_inv_29_without_an_identity_in_force_401(world: World, operation: Operation, who: str | None) -> None:
    async with nothing_changes(world):
        answer = await world.send(operation, who, world.private)
    assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer")
    assert CANARY not in answer.text


@each_operation
async def test_inv_27_another_tenant_404(world: World, operation: Operation) -> None:
    async with nothing_changes(world):
        theirs = await world.send(operation, "eve", world.private)
        none = await world.request(
            operation.method,
            operation.pattern.format(tenantId="no-such-tenant", **world.private),
            "eve",
            BODIES[operation.name],
        )
    assert theirs.status_code == none.status_code == 404
    assert theirs.json() == none.json(), "a tenant that exists and one that does not look the same"


@each_operation
async def test_inv_29_without_the_capability_403(world: World, operation: Operation) -> None:
    async with nothing_changes(world):
        answer = await world.send(operation, "poor", world.shared)
    assert answer.status_code == 403
    assert answer.json()["code"] == "capability_missing"
    assert f"memory:{operation.verb.value}" in answer.json()["detail"]


@each_operation
async def test_inv_27_what_is_not_visible_is_404_or_not_there(world: World, operation: Operation) -> None:
    if operation.verb is Verb.ADD:
        return await _cannot_write_to_anothers_name(world, operation)
    async with nothing_changes(world):
        answer = await world.send(operation, "carl", world.private)
        unknown = await world.send(operation, "carl", UNKNOWN)
    assert CANARY not in answer.text and world.private["documentId"] not in answer.text
    if not operation.is_of_one:
        assert answer.status_code == 200
        return None
    assert answer.status_code == unknown.status_code == 404
    assert answer.json() == unknown.json(), "what is hidden and what is not there look the same"
    return None


async def _cannot_write_to_anothers_name(world: World, operation: Operation) -> None:
    async with nothing_changes(world):
        answer = await world.send(operation, "carl", world.private)
    told = answer.json()["items"][0]["error"] if operation.name[1] == "add/batch" else answer.json()
    assert told["code"] == "not_document_writer"
    assert CANARY not in answer.text and world.private["documentId"] not in answer.text


@each_operation
async def test_inv_27_what_is_visible_and_not_ones_own_is_read_and_not_touched(
    world: World, operation: Operation
) -> None:
    if not operation.is_of_one:
        answer = await world.send(operation, "bob", world.shared)
        assert world.private["documentId"] not in answer.text
        if operation.verb is not Verb.ADD:
            assert world.shared["documentId"] in answer.text
        return
    async with nothing_changes(world):
        answer = await world.send(operation, "bob", world.shared)
    if operation.name in READS_ONE:
        assert answer.status_code == 200 and CANARY in answer.text
    else:
        assert answer.status_code == 403
        assert answer.json()["code"] in ("not_document_owner", "not_version_creator")


async def test_the_feed_of_changes_tells_a_stranger_nothing(world: World) -> None:
    answer = await world.request("get", "/api/tenants/t/memory/feed?events=all", "carl")
    assert answer.status_code == 200 and answer.json()["entries"] == []


# --- tools ----------------------------------------------------------------------------------------------------------

ARGUMENTS: dict[str, dict[str, Any]] = {
    "memory_add": {"title": "x", "text": "x", "external_ref": "alices-own"},
    "memory_search": {"query": CANARY},
    "memory_list": {},
    "memory_feed": {},
    "memory_get": {"document_id": "documentId"},
    "memory_forget": {"document_id": "documentId"},
}
each_tool = pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])


async def call(world: World, tool: str, who: str | None, ids: dict[str, str]) -> httpx.Response:
    arguments = {name: ids.get(value, value) for name, value in ARGUMENTS[tool].items()}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return await world.request("post", "/mcp", who, content=json.dumps(body), headers=headers)


def told(answer: httpx.Response) -> tuple[bool, str]:
    result = answer.json()["result"]
    return result["isError"], json.dumps(result["content"])


@each_tool
@pytest.mark.parametrize("who", [None, "unknown", "garbage", "revoked", "expired"])
async def test_inv_29_a_tool_without_an_identity_401(world: World, tool: str, who: str | None) -> None:
    async with nothing_changes(world):
        assert (await call(world, tool, who, world.private)).status_code == 401


@each_tool
async def test_inv_29_a_tool_without_the_capability_is_an_error(world: World, tool: str) -> None:
    async with nothing_changes(world):
        is_error, text = told(await call(world, tool, "poor", world.shared))
    assert is_error and "memory:" in text and CANARY not in text


@each_tool
@pytest.mark.parametrize("who", ["carl", "eve"])
async def test_inv_27_a_tool_shows_and_changes_nothing_that_is_not_visible(world: World, tool: str, who: str) -> None:
    if (tool, who) == ("memory_add", "eve"):
        return  # she has a name of her own to write to, in her tenant
    async with nothing_changes(world):
        is_error, text = told(await call(world, tool, who, world.private))
        _, unknown = told(await call(world, tool, who, UNKNOWN))
    assert CANARY not in text and world.private["documentId"] not in text
    if tool in ("memory_get", "memory_forget"):
        assert is_error and text == unknown
    assert is_error == (tool in ("memory_add", "memory_get", "memory_forget"))


@each_tool
async def test_inv_27_a_tool_forgets_nothing_that_is_not_ones_own(world: World, tool: str) -> None:
    if tool == "memory_forget":
        async with nothing_changes(world):
            is_error, text = told(await call(world, tool, "bob", world.shared))
        assert is_error and "creator" in text
    elif tool == "memory_get":
        is_error, text = told(await call(world, tool, "bob", world.shared))
        assert not is_error and CANARY in text
