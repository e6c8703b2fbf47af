"""The embedded Temporal server: state over a crash, search attributes, and which binary is taken."""

import importlib.metadata
import socket
import stat
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client

from memory_plane.dev.errors import StackError
from memory_plane.dev.temporal import SEARCH_ATTRIBUTES, TemporalPorts, TemporalServer, temporal_program
from tests.dev.waiting import until_gone


def _temporal_that_says(directory: Path, answer: str) -> Path:
    directory.mkdir()
    program = directory / "temporal"
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


async def test_state_survives_a_kill_and_a_stop(tmp_path: Path) -> None:
    server = TemporalServer(tmp_path / "a place with spaces", namespace="other")
    try:
        await server.start()
        client = await server.client()
        await client.start_workflow("Waiting", id="waits", task_queue="nobody")
        first = server.child.pid
        await server.kill()
        await server.start()
        assert (await client.get_workflow_handle("waits").describe()).id == "waits"
        await server.stop()
        await server.start()
        assert (await client.get_workflow_handle("waits").describe()).id == "waits"
        await until_gone(first)
        second = server.child.pid
    finally:
        await server.stop()
    await until_gone(second)


async def test_it_has_our_search_attributes(temporal_client: Client) -> None:
    answer = await temporal_client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=temporal_client.namespace)
    )
    for name in SEARCH_ATTRIBUTES:
        assert answer.custom_attributes[name] == IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD


async def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=rf"Port {port} for Temporal \(ui\) is in use"):
            await TemporalServer(tmp_path, ports=TemporalPorts(ui=port)).start()


async def test_a_server_that_ends_at_once_is_said(tmp_path: Path) -> None:
    server = TemporalServer(tmp_path)
    (tmp_path / "temporal.db").mkdir()
    with pytest.raises(StackError, match=r"Temporal ended at once with exit code \d+; see .*temporal\.log"):
        await server.start()


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ("temporal version 1.9.9 (Server 1.32.7, UI 2.54.1)", True),
        ("temporal version 2.0.0 (Server 2.0.0, UI 3.0.0)", True),
        ("temporal version 1.3.0 (Server 1.27.1, UI 2.36.0)", False),
        ("who knows", False),
    ],
)
async def test_a_temporal_on_path_is_taken_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, taken: bool
) -> None:
    program = _temporal_that_says(tmp_path / "bin", answer)
    monkeypatch.setenv("PATH", str(program.parent))
    found = await temporal_program()
    assert (found == program) is taken


async def test_no_temporal_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    program = _temporal_that_says(tmp_path / "bin", "temporal version 1.3.0 (Server 1.27.1, UI 2.36.0)")
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(StackError, match=r"no Temporal server 1\.32\.0 or newer; run pip install"):
        await temporal_program()
