"""The OpenAPI document is the promise: who may call, what is answered. Both are held against the real facade."""

from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.app import create_app
from memory_plane.contracts.enums import Verb
from tests.api.conftest import Facade, by_header
from tests.api.server import served
from tests.fixtures.database import settings_for

OPEN = {("get", "/healthz"), ("get", "/readyz"), ("get", "/metrics")}
"""What needs no identity. A new route is either here, on purpose, or names its grant."""


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


async def test_inv_29_every_route_asks_who_calls_and_whether_he_may(facade: Facade) -> None:
    async with facade.caller(None, path="") as nobody:
        document = (await nobody.get("/openapi.json")).json()
    guarded = [entry for entry in operations(document) if entry[:2] not in OPEN]
    assert len(guarded) >= 9
    for method, pattern, operation in guarded:
        needed = Verb(operation["x-memory-grant"].removeprefix("memory:"))
        assert operation["security"] == [{"bearer": []}]
        path = pattern.format(tenantId=facade.tenant, documentId="kdoc_1", versionId="kver_1")
        others = f"rich-but-for-{needed}"
        await facade.allow(others, *(verb for verb in Verb if verb is not needed))
        for principal, tenant, status in (
            (None, facade.tenant, 401),
            ("ann", "another-tenant", 404),
            ("poor", facade.tenant, 403),
            (others, facade.tenant, 403),
        ):
            async with facade.caller(principal, of=tenant, path="") as client:
                answer = await client.request(method, path)
            assert answer.status_code == status, (method, pattern, principal, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
            if status == 403:
                assert f"memory:{needed.value}" in answer.json()["detail"]
        async with facade.caller("ann", path="") as client:
            assert (await client.request(method, path)).status_code not in (401, 403)


async def test_open_routes_are_those_meant_and_no_others(facade: Facade) -> None:
    async with facade.caller(None, path="") as nobody:
        document = (await nobody.get("/openapi.json")).json()
        listed = {(method, path) for method, path, operation in operations(document) if "security" not in operation}
        assert listed == OPEN
        served_paths = {getattr(route, "path", None) for route in facade.app.routes}
        assert served_paths - document["paths"].keys() <= {"/openapi.json", "/mcp", None}


async def test_every_refusal_is_documented_with_an_example(facade: Facade) -> None:
    document = facade.app.openapi()
    for method, path, operation in operations(document):
        assert operation["summary"]
        for status, response in operation["responses"].items():
            if status != "200":
                [(media, content)] = response["content"].items()
                assert media == "application/problem+json", (method, path, status)
                assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
                assert content["example"]["status"] == int(status)
    assert "HTTPValidationError" not in document["components"]["schemas"]


async def test_every_route_has_examples_that_its_own_schema_takes(facade: Facade) -> None:
    document = facade.app.openapi()
    for method, path, operation in operations(document):
        if (method, path) in OPEN:
            continue
        contents = [operation["responses"]["200"]["content"]["application/json"]]
        if "requestBody" in operation:
            contents.append(operation["requestBody"]["content"]["application/json"])
        for content in contents:
            resolvable = {"components": document["components"], **content["schema"]}
            jsonschema.Draft202012Validator(resolvable).validate(content["example"])


@pytest.fixture(scope="module")
def fuzzed(module_database: str) -> Iterator[str]:
    """A served facade on this module's database, whose Temporal is not there and whose adds are taken all the same."""
    settings_ = settings_for(module_database, temporal_address="127.0.0.1:1")
    with served(create_app(settings_, caller_resolver=by_header)) as url:
        yield url


@pytest.fixture(scope="module")
def seeded(fuzzed: str, fuzz_grants: None) -> dict[str, str]:
    """The ids of a document of ann's in the tenant `fuzz`."""
    answer = httpx.post(
        f"{fuzzed}/api/tenants/fuzz/memory/add",
        json={"title": "Seed", "text": "Something to find."},
        headers={"Authorization": "Bearer fuzz/ann"},
    )
    assert answer.status_code == 200, answer.text
    body: dict[str, str] = answer.json()
    return body


@pytest.fixture(scope="module")
async def fuzz_grants(service: tuple[Any, Any]) -> None:
    await Facade(*service, tenant="fuzz").allow("ann")


# The document is made without a database; the requests go to the served facade.
schema = schemathesis.openapi.from_dict(
    create_app(settings_for("postgresql://nowhere/none"), caller_resolver=by_header).openapi()
)


@schema.parametrize()
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_inv_35_no_answer_is_undocumented_and_none_is_a_5xx(
    case: Any, fuzzed: str, fuzz_grants: None, seeded: dict[str, str]
) -> None:
    path = case.path_parameters or {}
    if "tenantId" in path:
        path["tenantId"] = "fuzz"
    for name in ("documentId", "versionId"):
        # Half of the generated ids become a real one, so that what lies behind it is reached too.
        if name in path and len(str(path[name])) % 2 == 0:
            path[name] = seeded[name]
    case.call_and_validate(
        base_url=fuzzed,
        headers={"Authorization": "Bearer fuzz/ann"},
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_headers_conformance,
            response_schema_conformance,
        ],
    )
