"""Whose document it is: the hidden looks like the missing, and what one may see is not therefore one's own."""

import httpx
import pytest

from api.app import create_app
from memory_plane.store import tokens
from memory_plane.store.database import Pool, connection
from memory_plane.store.grants import PostgresGrantStore
from tests.api.conftest import Facade, rule, running
from tests.fixtures.database import settings_for

NOTE = {"title": "Ann's", "text": "Something of Ann's."}


async def touches(client: httpx.AsyncClient, document: str, version: str) -> dict[str, httpx.Response]:
    """Every route that names a document or version."""
    return {
        "get": await client.get(f"/documents/{document}"),
        "forget": await client.post(f"/documents/{document}/forget"),
        "purge": await client.post(f"/documents/{document}/purge"),
        "reclass": await client.post(f"/versions/{version}/retention-class", json={"retention_class": "durable"}),
    }


async def test_what_is_not_visible_answers_as_what_is_not_there(facade: Facade, ann: httpx.AsyncClient) -> None:
    await facade.allow("bob")
    ids = (await ann.post("/add", json=NOTE)).json()
    async with facade.caller("bob") as bob:
        hidden = await touches(bob, ids["documentId"], ids["versionId"])
        unknown = await touches(bob, "kdoc_" + "0" * 32, "kver_" + "0" * 32)
        assert (await bob.get("/list")).json() == {"events": []}
        assert (await bob.get("/feed")).json()["entries"] == []
        assert (await bob.post("/search", json={"query": "something"})).json()["items"] == []
    for route, answer in hidden.items():
        assert answer.status_code == 404, route
        assert answer.json() == unknown[route].json()


async def test_inv_27_a_peer_sees_and_may_neither_forget_purge_nor_reclass(
    facade: Facade, ann: httpx.AsyncClient
) -> None:
    await facade.allow("bob")
    ids = (await ann.post("/add", json=NOTE | {"share": {"principals": ["bob"]}})).json()
    async with facade.caller("bob") as bob:
        answers = await touches(bob, ids["documentId"], ids["versionId"])
    assert {route: answer.status_code for route, answer in answers.items()} == {
        "get": 200,
        "forget": 403,
        "purge": 403,
        "reclass": 403,
    }
    codes = {answers[route].json()["code"] for route in ("forget", "purge", "reclass")}
    assert "capability_missing" not in codes
    assert (await ann.get(f"/documents/{ids['documentId']}")).json()["text"] == NOTE["text"]


async def test_inv_11_ids_of_another_tenant_are_unknown(facade: Facade, ann: httpx.AsyncClient) -> None:
    ids = (await ann.post("/add", json=NOTE)).json()
    other = Facade(facade.app, facade.engine, facade.tenant + "-other")
    await other.allow("ann")
    async with other.caller() as namesake:
        answers = await touches(namesake, ids["documentId"], ids["versionId"])
        claim = await namesake.post("/add", json=NOTE | {"derived_from": [ids["versionId"]]})
    assert {answer.status_code for answer in answers.values()} == {404}
    assert claim.status_code == 400


@pytest.mark.parametrize("credential", ["", "Bearer", "Bearer ", "Basic eDp5", "Bearer no-such-token", "Bearer \xff"])
async def test_no_token_in_force_is_401(module_pool: Pool, module_database: str, credential: str) -> None:
    async with connection(module_pool) as conn:
        token, _ = await tokens.issue(conn, "acme", "ann")
        gone, gone_row = await tokens.issue(conn, "acme", "ann")
        await tokens.revoke(conn, gone_row.id)
        expired, expired_row = await tokens.issue(conn, "acme", "ann")
        await conn.execute(
            "UPDATE memory.api_token SET expires_at = now() - interval '1 second' WHERE id = $1", expired_row.id
        )
    await PostgresGrantStore(module_pool).put_grant("acme", rule("ann", "memory", "search"))
    app = create_app(settings_for(module_database, memory_auth="token", temporal_address="127.0.0.1:1"))
    async with (
        running(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://facade") as client,
    ):
        for refused in (credential, f"Bearer {gone}", f"Bearer {expired}"):
            answer = await client.get(
                "/api/tenants/acme/memory/list", headers={b"Authorization": refused.encode("latin-1")}
            )
            assert answer.status_code == 401, refused
            assert token not in answer.text
        taken = await client.get("/api/tenants/acme/memory/list", headers={"Authorization": f"Bearer {token}"})
        assert taken.status_code == 200
