"""With keys, what passes through a real Temporal is unreadable there, and readable to who has them."""

import asyncio
import base64
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload, SearchAttributes
from temporalio.client import Client

from api.codec_server import CodecServerRefused, codec_app
from api.starter import TemporalStarter
from memory_plane.contracts import names
from memory_plane.core.payload_keys import PayloadKeys
from memory_plane.dev.checkout import checkout
from memory_plane.dev.child import Child, Command
from memory_plane.dev.ports import free_port
from memory_plane.dev.temporal import TemporalServer, temporal_program
from memory_plane.payload_codec import PayloadUnreadable
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from memory_plane.temporal import connect
from tests.canaries import histories
from tests.cli.conftest import run_memory
from tests.distilling.notes import Notes
from tests.embedding.corpus import embed_state, make_generation, store
from tests.encryption.conftest import key, with_keys
from tests.eventually import eventually
from tests.workflows.conftest import RunWorkers, running_workers
from tests.workflows.test_hosting import TENANT, TEXT, HostWorkflow, run_host

WORDS = (TEXT.encode(), b"The cup is red.", b"kettle")
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is refused
ORIGIN = "http://127.0.0.1:8233"


def payloads(message: Message) -> Iterator[Payload]:
    """Every payload in it but search attributes, by which Temporal searches."""
    for field, value in message.ListFields():
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            continue
        for each in value.values() if isinstance(value, Mapping) else value if field.is_repeated else [value]:
            if isinstance(each, Payload):
                yield each
            elif isinstance(each, Message) and not isinstance(each, SearchAttributes):
                yield from payloads(each)


async def test_a_whole_ingest_leaves_no_readable_payload(client: Client, workers: RunWorkers, engine: Engine) -> None:
    await Notes.of(engine, TENANT)
    async with workers():
        told = await run_host(client, HostWorkflow, "alice")
    assert told["found"] == told["listed"] == [told["added"]]
    assert told["ingested"]["embedded"] == 1

    seen = 0
    async for execution, kept in histories(client):
        assert not any(word in kept for word in WORDS), execution.id
        history = await client.get_workflow_handle(execution.id).fetch_history()
        found = [payload for event in history.events for payload in payloads(event)]
        assert {payload.metadata["encoding"] for payload in found} == {b"binary/encrypted"}, execution.id
        seen += len(found)
    assert seen > 10


async def test_who_has_no_key_or_another_is_told_and_work_goes_on_once_it_is_there(
    client: Client, encrypting: Settings, server: TemporalServer, starter: TemporalStarter, engine: Engine
) -> None:
    stored = await store(
        engine.pool, TENANT, await make_generation(engine.pool, TENANT, engine.settings.default_recipe()), ["text"]
    )
    stranger = await connect(with_keys(encrypting, server, f"2026:{key('z')}"))
    await starter.start_ingest(TENANT, [stored.version_id])
    workflow_id = names.ingest_id(TENANT, stored.version_id)

    async def told() -> bool:
        history = await client.get_workflow_handle(workflow_id).fetch_history()
        return any(
            "cannot be opened with the key '2026'" in event.workflow_task_failed_event_attributes.failure.message
            for event in history.events
        )

    async with running_workers(stranger, engine):
        await eventually(told, what="the workflow task to say which key is wrong")
    async with running_workers(client, engine):
        assert await starter.wait_ingest(TENANT, [stored.version_id], 60)
    assert await embed_state(engine.pool, stored.version_id) == "embedded"
    with pytest.raises(PayloadUnreadable, match="Put right MEMORY_PAYLOAD_KEYS"):
        await stranger.get_workflow_handle(workflow_id).result()
    # An add that waits has its rows, and needs no word from Temporal.
    assert await TemporalStarter(stranger).wait_ingest(TENANT, [stored.version_id], 60)


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8234") as http:
        yield http


def as_json(payload: Payload) -> dict[str, Any]:
    return dict(json_format.MessageToDict(payload))


async def test_the_temporal_command_reads_through_the_codec_server(
    client: Client, server: TemporalServer, tmp_path: Any
) -> None:
    handle = await client.start_workflow("Nobody", TEXT, id="for-the-command", task_queue="nobody")
    port = free_port()
    environment = {"MEMORY_PAYLOAD_KEYS": f"2027:{key('b')},2026:{key('a')}", "PYTHONPATH": str(checkout())}
    child = await Child.start(
        Command(
            name="codec server",
            argv=(sys.executable, "-m", "memory_plane.cli.main", "codec-server", "--port", str(port)),
            log=tmp_path / "codec.log",
            env=environment,
        )
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:

            async def alive() -> bool:
                try:
                    return (await http.get("/healthz")).status_code == 200
                except httpx.TransportError:
                    return False

            await eventually(alive, what="the codec server to serve")
        shown = [await _temporal(server, handle.id, *more) for more in ((), ("--codec-endpoint", str(http.base_url)))]
    finally:
        await child.stop()
    in_the_clear = base64.b64encode(f'"{TEXT}"'.encode()).decode()
    assert [in_the_clear in each for each in shown] == [False, True]


async def _temporal(server: TemporalServer, workflow_id: str, *more: str) -> str:
    arguments = ("workflow", "show", "--workflow-id", workflow_id, "--address", server.address, "-o", "json")
    process = await asyncio.create_subprocess_exec(
        str(await temporal_program()), *arguments, *more, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


async def test_the_server_converts_both_ways_for_the_ui_of_its_origin() -> None:
    app = codec_app(PayloadKeys.parse(f"2026:{key('a')}"), origins=[ORIGIN], token=None)
    plain = {"payloads": [as_json(Payload(metadata={"encoding": b"json/plain"}, data=b'"kettle"'))]}
    async with served(app) as http:
        headers = {"origin": ORIGIN, "x-namespace": "default"}
        encoded = await http.post("/encode", json=plain, headers=headers)
        assert "binary/encrypted" not in encoded.text, "base64, as protobuf has it"
        decoded = await http.post("/decode", json=encoded.json(), headers=headers)
        assert decoded.json() == plain != encoded.json()
        assert decoded.headers["access-control-allow-origin"] == ORIGIN
        asked = {**headers, "access-control-request-method": "POST"}
        allowed = await http.options(
            "/decode", headers={**asked, "access-control-request-headers": "x-namespace,content-type,authorization"}
        )
        assert allowed.status_code == 200
        elsewhere = await http.options("/decode", headers={**asked, "origin": "http://evil.example"})
        assert elsewhere.status_code == 400
        rebound = await http.post("/decode", json=encoded.json(), headers={"host": "evil.example"})
        assert (rebound.status_code, rebound.json()["code"]) == (403, "codec_host")


async def test_what_the_server_cannot_do_it_says() -> None:
    theirs = codec_app(PayloadKeys.parse(f"2025:{key('a')}"), origins=[], token=None)
    async with served(codec_app(PayloadKeys.parse(f"2026:{key('a')}"), origins=[], token=None)) as http:
        encoded = (await http.post("/encode", json={"payloads": [{"data": "AAAA"}]})).json()
    async with served(theirs) as http:
        unreadable = await http.post("/decode", json=encoded)
        assert (unreadable.status_code, unreadable.json()["code"]) == (400, "payload_key")
        assert "the key '2026', which this process has not" in unreadable.json()["detail"]
        for nonsense in (b"", b"{", b'{"payloads": 1}', b'{"payloads": [{"data": 1}]}', b"\xff"):
            refused = await http.post("/decode", content=nonsense)
            assert (refused.status_code, refused.json()["code"]) == (400, "invalid"), nonsense
        assert (await http.post("/decode", content=b"x", headers={"content-length": "99999999"})).status_code == 413


async def test_beyond_this_machine_it_wants_a_token() -> None:
    keys = PayloadKeys.parse(f"2026:{key('a')}")
    with pytest.raises(CodecServerRefused, match="set MEMORY_CODEC_TOKEN"):
        codec_app(keys, origins=[], token=None, host=EVERYWHERE)
    token = "a-token-of-the-operators"
    async with served(codec_app(keys, origins=[], token=token, host=EVERYWHERE)) as http:
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": token}):
            assert (await http.post("/decode", json={}, headers=given)).status_code == 401
        assert (await http.post("/decode", json={}, headers={"authorization": f"Bearer {token}"})).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "variables", "says"),
    [
        ((), {}, "MEMORY_PAYLOAD_KEYS is not set"),
        ((), {"MEMORY_PAYLOAD_KEYS": "x"}, "no key in place 1"),
        (("--host", EVERYWHERE), {"MEMORY_PAYLOAD_KEYS": f"a:{key('a')}"}, "set MEMORY_CODEC_TOKEN"),
    ],
)
async def test_the_command_says_what_is_missing(
    arguments: tuple[str, ...], variables: dict[str, str], says: str, tmp_path: Any
) -> None:
    ended = await run_memory("codec-server", *arguments, environment=variables, cwd=tmp_path)
    assert ended.code == 1
    assert says in " ".join(ended.err.split())


def test_every_client_of_ours_is_made_in_one_place() -> None:
    makers = {
        str(file.relative_to(checkout()))
        for folder in ("memory_plane", "api", "activities", "workflows")
        for file in (checkout() / folder).rglob("*.py")
        if re.search(r"\bClient\.connect\(", file.read_text(encoding="utf-8"))
    }
    # The development server asks its own server whether it is up, and says nothing else to it.
    assert makers == {"memory_plane/temporal.py", "memory_plane/dev/temporal.py"}
    assert "Client.connect(" not in (checkout() / "worker.py").read_text() + (checkout() / "schedules.py").read_text()
