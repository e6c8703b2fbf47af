"""A tiny HTTP/1.1 server that can also misbehave: reset connections, send what it likes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class ResetConnection(Exception):
    """Raised by a handler to break the connection without an answer."""


class HttpServer:
    """Serves `handle` on a free port of the loopback interface until closed."""

    def __init__(self, handle: Callable[[Request], Awaitable[Reply]]) -> None:
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[Any]] = set()
        self.port = 0

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", port, limit=16 * 1024 * 1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
        # A cancelled connection task ends quietly: the stream's own callback would log it as an error.
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            try:
                while True:
                    request = await _read(reader)
                    writer.write(_encode(await self._handle(request)))
                    await writer.drain()
            except ResetConnection:
                _abort(writer)
            finally:
                writer.close()
        if task is not None:
            self._connections.discard(task)


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *lines = head.split("\r\n")
    method, target, _ = request_line.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, urlsplit(target).path, headers, body)


def _encode(reply: Reply) -> bytes:
    headers = {
        "content-type": reply.content_type,
        "content-length": str(len(reply.body)),
        **reply.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {reply.status} -\r\n{lines}\r\n".encode("latin-1") + reply.body


def _abort(writer: asyncio.StreamWriter) -> None:
    # With a linger time of zero, closing sends RST instead of FIN.
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
