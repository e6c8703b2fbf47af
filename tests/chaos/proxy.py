"""A TCP proxy between two parts, which can cut, refuse and stall what passes through it."""

import asyncio
import socket
import struct
from types import TracebackType
from typing import Self

from memory_plane.dev.ports import HOST

_PIECE = 65_536


class TcpProxy:
    """Listens on a free port of this machine and passes everything to `port`."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._refusing = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def open(self) -> int:
        """Ends of connections that are open now."""
        return len(self._writers)

    def cut(self) -> None:
        """Reset every connection; new ones are taken."""
        for writer in list(self._writers):
            _reset(writer)
        self._writers.clear()

    def refuse(self) -> None:
        """Reset every connection, and each new one at once, until `heal`."""
        self._refusing = True
        self.cut()

    def stall(self) -> None:
        """Pass nothing on until `heal`: connections stay open and silent, as behind a firewall that drops."""
        self._flowing.clear()

    def heal(self) -> None:
        self._refusing = False
        self._flowing.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            _reset(writer)
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._target)
        except OSError:
            _reset(writer)
            return
        ends = {writer, far_writer}
        self._writers |= ends
        try:
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        except asyncio.CancelledError:
            return  # the proxy ends; a stream server's task that is cancelled would be told of as a failure
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(_PIECE):
                await self._flowing.wait()
                writer.write(piece)
                await writer.drain()
            await self._flowing.wait()
            if not writer.transport.is_closing() and writer.can_write_eof():
                writer.write_eof()
        except OSError:  # one end was reset: so is the other
            writer.transport.abort()


def _reset(writer: asyncio.StreamWriter) -> None:
    """End it with a reset instead of a proper farewell, which the other end could take for an answer's end."""
    if writer.transport.is_closing():
        return
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
