"""The lean transport against servers that are slow, chatty, closing, encrypted, or no HTTP at all; on both loops."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memory_plane.models import transport
from memory_plane.models.endpoint import LeanClient, http_client
from memory_plane.models.transport import LeanTransport

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Counts its connections; each of them is served by one coroutine."""

    def __init__(self, serve: Serve, tls: ssl.SSLContext | None = None) -> None:
        self._serve = serve
        self._tls = tls
        self.connections = 0
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Server"]:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=self._tls)
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        try:
            yield self
        finally:
            server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def one_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    return head + await reader.readexactly(length)


def answering(*replies: bytes, close: bool = False) -> Serve:
    """Each request of a connection gets the next reply; the last one again and again."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = 0
        while True:
            await one_request(reader)
            writer.write(replies[min(place, len(replies) - 1)])
            await writer.drain()
            place += 1
            if close:
                return

    return serve


@asynccontextmanager
async def client(**options: int) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=LeanTransport(**options), timeout=10) as opened:
        yield opened


async def post(http: httpx.AsyncClient, server: Server, content: bytes = b"{}") -> httpx.Response:
    return await http.post(server.url, content=content)


async def test_one_connection_serves_one_request_after_the_other() -> None:
    async with Server(answering(OK)).running() as server, client() as http:
        for _ in range(5):
            assert (await post(http, server)).text == "ok"
        assert server.connections == 1


async def test_requests_at_once_have_connections_of_their_own_up_to_the_limit() -> None:
    release, asked = asyncio.Event(), asyncio.Semaphore(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await one_request(reader)
            asked.release()
            await release.wait()
            writer.write(OK)

    async with Server(serve).running() as server, client(max_connections=3) as http:
        requests = [asyncio.create_task(post(http, server)) for _ in range(8)]
        for _ in range(3):
            await asked.acquire()
        assert server.connections == 3
        release.set()
        assert [reply.text for reply in await asyncio.gather(*requests)] == ["ok"] * 8
        assert server.connections == 3


@pytest.mark.parametrize(
    ("reply", "text", "close"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde", False),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", False),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", False),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "ok", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "", False),
    ],
    ids=["chunked", "until closed", "old", "interim", "closing", "empty"],
)
async def test_a_reply_of_any_framing_is_read_to_its_end(reply: bytes, text: str, close: bool) -> None:
    async with Server(answering(reply, close=close)).running() as server, client() as http:
        assert [(await post(http, server)).text for _ in range(3)] == [text] * 3


async def test_a_reply_in_single_bytes_is_the_same() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await one_request(reader)
        for byte in OK:
            writer.write(bytes([byte]))
            await writer.drain()
        await reader.read()

    async with Server(serve).running() as server, client() as http:
        assert (await post(http, server)).text == "ok"


@pytest.mark.parametrize(
    "reply",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", b"HTTP/1.1 200 OK\r\nContent-Le", b"SSH-2.0-OpenSSH\r\n"],
    ids=["nothing", "half a body", "half a head", "no HTTP"],
)
async def test_what_is_no_whole_reply_is_a_transport_error(reply: bytes) -> None:
    async with Server(answering(reply, close=True)).running() as server, client() as http:
        with pytest.raises(httpx.TransportError):
            await post(http, server)
        with pytest.raises(httpx.TransportError):
            await post(http, server)


async def test_a_server_that_sends_more_than_one_reply_is_not_asked_again_on_that_connection() -> None:
    async with Server(answering(OK + OK)).running() as server, client() as http:
        assert (await post(http, server)).text == "ok"
        assert (await post(http, server)).text == "ok"
        assert server.connections == 2


async def test_nobody_listening_is_a_connect_error() -> None:
    async with Server(answering(OK)).running() as server:
        pass
    async with client() as http:
        with pytest.raises(httpx.ConnectError):
            await post(http, server)


async def test_a_connection_that_the_server_has_closed_meanwhile_is_not_used_again() -> None:
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await one_request(reader)
        writer.write(OK)
        await writer.drain()
        writer.close()
        closed.set()

    async with Server(serve).running() as server, client() as http:
        for _ in range(3):
            assert (await post(http, server)).text == "ok"
            await closed.wait()
            closed.clear()
            await _settled()


async def _settled() -> None:
    """The loop has seen what its sockets have to tell."""
    await asyncio.get_running_loop().run_in_executor(None, lambda: None)
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_connection_too_long_idle_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "IDLE_SECONDS", -1.0)
    async with Server(answering(OK)).running() as server, client() as http:
        await post(http, server)
        await post(http, server)
        assert server.connections == 2


async def test_a_cancelled_request_gives_its_turn_to_the_next() -> None:
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        content = await one_request(reader)
        if content.endswith(b"hang"):
            asked.set()
            await reader.read()
        else:
            writer.write(OK)

    async with Server(serve).running() as server, client(max_connections=1) as http:
        for _ in range(3):
            hanging = asyncio.create_task(post(http, server, b"hang"))
            await asked.wait()
            asked.clear()
            hanging.cancel()
            await asyncio.gather(hanging, return_exceptions=True)
        assert (await post(http, server)).text == "ok"


async def test_a_reply_that_nobody_reads_to_its_end_costs_the_connection_and_no_turn() -> None:
    big = b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 9_000_000
    async with Server(answering(big)).running() as server, client(max_connections=1) as http:
        for _ in range(3):
            async with http.stream("POST", server.url, content=b"{}") as reply:
                assert reply.status_code == 200
        assert server.connections == 3


async def test_a_large_reply_waits_in_the_network_and_not_in_memory() -> None:
    size = 16 * 1024 * 1024
    big = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size
    async with Server(answering(big)).running() as server, client() as http:
        async with http.stream("POST", server.url, content=b"{}") as reply:
            largest, total = 0, 0
            async for chunk in reply.aiter_raw():
                largest, total = max(largest, len(chunk)), total + len(chunk)
                await _settled()
        assert total == size
        assert largest < transport.MAX_BUFFERED + 512 * 1024


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "server.pem"
    file.write_bytes(
        built.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return file


async def test_tls_is_spoken_and_checked(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with Server(answering(OK), tls).running() as server:
        async with client() as http:
            with pytest.raises(httpx.ConnectError):
                await post(http, server)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        async with client() as http:
            assert (await post(http, server)).text == "ok"
            assert (await post(http, server)).text == "ok"


def test_it_works_on_uvloop_as_well() -> None:
    async def main() -> list[str]:
        async with Server(answering(OK)).running() as server, client() as http:
            return [(await post(http, server)).text for _ in range(3)]

    assert uvloop.run(main()) == ["ok"] * 3


@pytest.mark.parametrize(("variable", "lean"), [("HTTPS_PROXY", False), ("NO_PROXY", True)])
async def test_behind_a_proxy_httpx_goes_its_own_way(
    monkeypatch: pytest.MonkeyPatch, variable: str, lean: bool
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    async with http_client() as http:
        assert isinstance(http, LeanClient) is lean
