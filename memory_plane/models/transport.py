"""A lean HTTP/1.1 transport for httpx: pooled connections over asyncio, replies parsed by httptools.

httpx's own transport takes about a millisecond of CPU for each request, which is as much as all else that an add or a
search does outside the database; this one takes a third of it. It does what a model endpoint needs: keep-alive, TLS,
chunked replies, backpressure. No HTTP/2, no proxies, no upgrades.
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import cast

import httptools
import httpx

IDLE_SECONDS = 4.0
"""A connection idle for longer is not used again: many servers close theirs after five."""
MAX_BUFFERED = 256 * 1024
"""Bytes of a reply that wait to be read; beyond them the connection is not read from."""
_PORTS = {"http": 80, "https": 443}

_Origin = tuple[str, str, int]


class LeanTransport(httpx.AsyncBaseTransport):
    """At most `max_connections` requests at a time; the others wait their turn."""

    def __init__(self, max_connections: int = 64) -> None:
        self._turns = asyncio.Semaphore(max_connections)
        self._idle: defaultdict[_Origin, list[_Connection]] = defaultdict(list)
        self._tls: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        url = request.url
        origin = (url.scheme, url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme])
        await self._turns.acquire()
        connection: _Connection | None = None
        try:
            connection = self._reuse(origin) or await self._connect(origin)
            status, headers = await connection.exchange(_head(request) + body)
        except BaseException:
            self._turns.release()
            if connection is not None:
                connection.abort()
            raise
        return httpx.Response(status, headers=headers, stream=_Body(self, origin, connection), request=request)

    def give_back(self, origin: _Origin, connection: "_Connection") -> None:
        """After the reply has been read to its end, or nobody wants the rest of it."""
        self._turns.release()
        if connection.is_reusable:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle[origin].append(connection)
        else:
            connection.abort()

    async def aclose(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
        self._idle.clear()

    def _reuse(self, origin: _Origin) -> "_Connection | None":
        idle = self._idle[origin]
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while idle:
            connection = idle.pop()
            if connection.is_reusable and connection.idle_since > oldest:
                return connection
            connection.abort()
        return None

    async def _connect(self, origin: _Origin) -> "_Connection":
        scheme, host, port = origin
        tls = self._tls_context() if scheme == "https" else None
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                _Connection, host, port, ssl=tls, server_hostname=host if tls else None
            )
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = httpx.create_ssl_context()
        return self._tls


def _head(request: httpx.Request) -> bytes:
    lines = [f"{request.method} {request.url.raw_path.decode('ascii')} HTTP/1.1\r\n".encode("ascii")]
    lines += [b"%s: %s\r\n" % header for header in request.headers.raw]
    return b"".join(lines) + b"\r\n"


class _Body(httpx.AsyncByteStream):
    def __init__(self, transport: LeanTransport, origin: _Origin, connection: "_Connection") -> None:
        self._transport = transport
        self._origin = origin
        self._connection: _Connection | None = connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._connection is not None and (chunk := await self._connection.body()) is not None:
            yield chunk

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._transport.give_back(self._origin, connection)


class _Connection(asyncio.Protocol):
    """One connection and, on it, one exchange at a time. httptools calls the `on_…` methods while it parses."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._lost = False
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._status: int | None = None
        self._chunks: list[bytes] = []
        self._buffered = 0
        self._ended = False
        self._keeps_alive = False
        self._failure: httpx.TransportError | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_reusable(self) -> bool:
        """Whether another exchange may follow on it."""
        return self._ended and self._keeps_alive and not self._lost and self._failure is None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def exchange(self, sent: bytes) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Send a request; status and headers of the reply, whose body follows."""
        self._begin()
        if self._lost or self._transport is None:
            raise httpx.ReadError("The connection was closed before the request was sent.")
        self._transport.write(sent)
        while self._status is None:
            await self._news()
        return self._status, self._headers

    async def body(self) -> bytes | None:
        """What has come of the body since, in one piece; None at its end."""
        while not self._chunks:
            if self._ended:
                return None
            await self._news()
        piece = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks, self._buffered = [], 0
        if self._transport is not None and not self._lost:
            self._transport.resume_reading()
        return piece

    async def _news(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _tell(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it

    def data_received(self, data: bytes) -> None:
        if self._failure is not None:
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(httpx.RemoteProtocolError("The server does not speak HTTP/1.1."))
        if self._buffered > MAX_BUFFERED and self._transport is not None:
            self._transport.pause_reading()
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if exc is None and self._status is not None and self._lasts_until_closed():
            self._ended = True
        elif not self._ended and self._failure is None:
            self._failure = httpx.ReadError("The connection was closed before the reply was complete.")
        self._tell()

    def _lasts_until_closed(self) -> bool:
        names = {name.lower() for name, _ in self._headers}
        return not names & {b"content-length", b"transfer-encoding"}

    def _fail(self, failure: httpx.TransportError) -> None:
        self._failure = failure
        self.abort()

    # httptools

    def on_message_begin(self) -> None:
        if self._ended:  # more than it was asked for: what comes next is nobody's
            self._keeps_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # an interim reply: the real one follows
            self._headers = []
        elif not self._ended:
            self._status = status

    def on_body(self, body: bytes) -> None:
        if not self._ended:
            self._chunks.append(body)
            self._buffered += len(body)

    def on_message_complete(self) -> None:
        if self._status is not None and not self._ended:
            self._ended = True
            self._keeps_alive = self._parser.should_keep_alive()
