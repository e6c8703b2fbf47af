"""What is forgotten or purged is nowhere: no column of any table, no workflow history, no log of ours or Postgres'."""

import logging
from typing import Any

import pytest
from temporalio.client import Client

from api.starter import TemporalStarter
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import NotFound
from memory_plane.contracts.wire import AddRequest, SearchRequest
from memory_plane.core.caller import Caller
from memory_plane.dev.postgres import PostgresServer
from memory_plane.plane.engine import Engine
from memory_plane.store.database import connection
from memory_plane.store.grants import put_rules
from tests.access.seed import TENANT, allow
from tests.canaries import CANARY, leaks
from tests.retention.scan import columns_with
from tests.workflows.conftest import RunWorkers

EVERYWHERE = {
    "title": f"{CANARY} title",
    "text": f"{CANARY} text",
    "kind": CANARY,
    "attributes": {CANARY: CANARY},
    "access_tags": [f"memory.space:{CANARY}"],
    "entities": [{"kind": "person", "identifier": CANARY, "label": CANARY}],
}


async def add(engine: Engine, principal: str, **fields: Any) -> tuple[str, str]:
    visibility = await engine.access.visibility(Caller(TENANT, principal))
    payload = {**EVERYWHERE, **fields}
    outcome = await engine.adding.add(visibility, AddRequest.model_validate(payload), payload, None)
    return outcome.response.document_id, outcome.response.version_id


@pytest.mark.parametrize("verb", ["forget", "purge"])
async def test_inv_20_nothing_is_left_in_tables_histories_and_logs(
    engine: Engine,
    client: Client,
    starter: TemporalStarter,
    workers: RunWorkers,
    postgres: PostgresServer,
    caplog: pytest.LogCaptureFixture,
    verb: str,
) -> None:
    caplog.set_level(logging.INFO)
    async with connection(engine.pool) as conn:
        rules = [allow(who, "memory", each.value) for who in ("alice", "dora") for each in Verb]
        await put_rules(conn, TENANT, [*rules, allow("dora", "memory.owner:alice")])
    alice = await engine.access.visibility(Caller(TENANT, "alice"))
    async with workers():
        document, version = await add(engine, "alice", wait="captured")
        claim, claimed = await add(
            engine, "dora", derived_from=[version], access_tags=[f"x:{CANARY}"], request_widening=True, wait="captured"
        )
        for each in (version, claimed):
            assert await starter.wait_ingest(TENANT, [each], 30)
        found = await engine.search.search(alice, SearchRequest(query=CANARY))
        assert {item.document_id for item in found.items} == {document}
        assert len(await columns_with(engine.pool, CANARY)) >= 10

        await getattr(engine.retention, verb)(alice, document)

        assert (await engine.search.search(alice, SearchRequest(query=CANARY))).items == []
        assert (await engine.library.list(alice, 100, None)).events == []
        assert (await engine.feed.entries(alice, 0, 100)).entries == []
        if verb == "purge":
            with pytest.raises(NotFound):
                await engine.library.get(alice, document)
        else:
            assert (await engine.library.get(alice, document)).text is None
        dora = await engine.access.visibility(Caller(TENANT, "dora"))
        assert (await engine.library.get(dora, claim)).text is None
        [request] = [each async for each in client.list_workflows("WorkflowType = 'WidenAudienceWorkflow'")]
        await client.get_workflow_handle(request.id).signal("decided")
        assert (await client.get_workflow_handle(request.id).result())["state"] == "gone"

    assert await columns_with(engine.pool, CANARY) == set()
    assert await leaks(client) == []
    assert [record.getMessage() for record in caplog.records if CANARY in record.getMessage()] == []
    assert CANARY not in postgres.log.read_text(errors="replace")
