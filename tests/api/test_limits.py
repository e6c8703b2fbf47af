"""What one client cannot take from the others: memory by a large body, a worker by a slow one, sockets by idling."""

import asyncio
import resource
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from api.app import create_app
from api.body import BodyLimits
from memory_plane.store import tokens
from memory_plane.store.database import Pool, connection
from memory_plane.store.grants import PostgresGrantStore
from tests.api.conftest import Facade, by_header, rule
from tests.api.server import served
from tests.fixtures.database import settings_for

TEN_MB = 10_000_000
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def quick_to_lose_patience(module_database: str) -> Iterator[str]:
    """A served facade that waits for a body half a second."""
    app = create_app(
        settings_for(module_database, temporal_address="127.0.0.1:1"),
        caller_resolver=by_header,
        body_limits=BodyLimits(idle_seconds=0.5, total_seconds=1.0),
    )
    with served(app) as url:
        yield url


@pytest.fixture
async def tenant(service: tuple[object, object]) -> str:
    facade = Facade(*service, tenant="limits")  # type: ignore[arg-type]
    await facade.allow("ann")
    return facade.tenant


def connected(url: str) -> socket.socket:
    address = httpx.URL(url)
    return socket.create_connection((address.host, address.port or 80), timeout=60)


def head(tenant: str, *lines: str) -> bytes:
    return "\r\n".join(
        [
            f"POST /api/tenants/{tenant}/memory/add HTTP/1.1",
            "Host: facade",
            f"Authorization: Bearer {tenant}/ann",
            "Content-Type: application/json",
            *lines,
            "\r\n",
        ]
    ).encode()


def answer(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    received = b""
    while piece := connection.recv(65_536):
        received += piece
    return received


def test_inv_36_a_declared_length_beyond_10_mb_is_413_before_a_byte_of_it(
    quick_to_lose_patience: str, tenant: str
) -> None:
    with connected(quick_to_lose_patience) as client:
        client.sendall(head(tenant, f"Content-Length: {TEN_MB + 1}"))
        received = answer(client)
    assert received.startswith(b"HTTP/1.1 413 ")
    assert b"application/problem+json" in received
    assert b"body_too_large" in received


def test_inv_36_a_chunked_body_is_413_once_it_exceeds(quick_to_lose_patience: str, tenant: str) -> None:
    with connected(quick_to_lose_patience) as client:
        client.sendall(head(tenant, "Transfer-Encoding: chunked"))
        piece = b"x" * 1_000_000
        for _ in range(TEN_MB // len(piece)):
            client.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
        client.sendall(b"1\r\nx\r\n")
        received = answer(client)
    assert received.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("length", [TEN_MB + 1, 40_000_000])
def test_inv_36_who_sends_it_all_before_reading_gets_the_413_too(
    quick_to_lose_patience: str, tenant: str, length: int
) -> None:
    with connected(quick_to_lose_patience) as client:
        client.sendall(head(tenant, f"Content-Length: {length}"))
        for _ in range(length // 1_000_000):
            client.sendall(b" " * 1_000_000)
        client.sendall(b" " * (length % 1_000_000))
        assert answer(client).startswith(b"HTTP/1.1 413 ")


def test_inv_36_a_body_of_10_mb_is_taken(quick_to_lose_patience: str, tenant: str) -> None:
    rest = b'{"title": "T", "text": "%s"}'
    body = rest % (b"word " * ((TEN_MB - len(rest) + 2) // 5))
    body += b" " * (TEN_MB - len(body))
    assert len(body) == TEN_MB
    taken = httpx.post(
        f"{quick_to_lose_patience}/api/tenants/{tenant}/memory/search",
        content=body,
        headers={"Authorization": f"Bearer {tenant}/ann", "Content-Type": "application/json"},
        timeout=60,
    )
    assert (taken.status_code, taken.json()["code"]) == (400, "invalid"), taken.text


def test_inv_36_slow_bodies_are_let_go_and_hold_nobody_up(quick_to_lose_patience: str, tenant: str) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(connected(quick_to_lose_patience)) for _ in range(50)]
        for client in slow:
            client.sendall(head(tenant, "Content-Length: 1000") + b'{"title"')
        listed = httpx.get(
            f"{quick_to_lose_patience}/api/tenants/{tenant}/memory/list",
            headers={"Authorization": f"Bearer {tenant}/ann"},
            timeout=60,
        )
        assert listed.status_code == 200
        for client in slow:
            assert answer(client).startswith(b"HTTP/1.1 408 ")


@asynccontextmanager
async def api_process(database: str) -> AsyncIterator[str]:
    """The API as an operator starts it: a process of its own, configured by its environment."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "uvicorn", "--factory", "api.app:app_from_environment"),
        *("--host", "127.0.0.1", "--port", str(port), "--no-access-log"),
        cwd=ROOT,
        env={
            "DATABASE_URL": database,
            "MEMORY_AUTH": "token",
            "TEMPORAL_ADDRESS": "127.0.0.1:1",
            "PATH": "/usr/bin:/bin",
        },
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        while b"Application startup complete" not in (line := await process.stderr.readline()):
            assert line, "the API ended before it had started"
        drained = asyncio.create_task(process.stderr.read())
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await drained


@pytest.fixture
def many_files() -> Iterator[None]:
    """Room for the sockets of this side."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_inv_36_a_thousand_idle_connections_do_not_stop_service(
    module_database: str, module_pool: Pool, many_files: None
) -> None:
    async with connection(module_pool) as conn:
        token, _ = await tokens.issue(conn, "idle", "ann")
    for verb in ("add", "search"):
        await PostgresGrantStore(module_pool).put_grant("idle", rule("ann", "memory", verb))
    async with api_process(module_database) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        with ExitStack() as stack:
            for number in range(1_000):
                idle = stack.enter_context(connected(url))
                if number % 2:
                    idle.sendall(b"POST /api/tenants/idle/memory/add HTTP/1.1\r\nHost: facade\r\n")
            client.headers["Authorization"] = f"Bearer {token}"
            added = await client.post("/api/tenants/idle/memory/add", json={"title": "T", "text": "x"})
            assert added.status_code == 200, added.text
            assert (await client.get("/healthz")).status_code == 200
            listed = await client.get("/api/tenants/idle/memory/list")
            assert [event["title"] for event in listed.json()["events"]] == ["T"]
