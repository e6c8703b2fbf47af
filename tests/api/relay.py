"""A TCP relay in front of a database, so that a test can take the database away and bring it back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx


class Relay:
    """Forwards to one address while it is open. The port stays the same."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self.port = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Refuse new connections and cut those there are."""
        if self._server is not None:
            self._server.close()
            for link in list(self._links):
                link.cancel()
            await asyncio.gather(*self._links, return_exceptions=True)
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links.add(link)
        link.add_done_callback(self._links.discard)
        try:
            to_reader, to_writer = await asyncio.open_connection(*self._target)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_pump(reader, to_writer))
                    group.create_task(_pump(to_reader, writer))
            finally:
                to_writer.close()
        finally:
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def relay_to(dsn: str, *, is_open: bool = True) -> AsyncIterator[tuple[Relay, str]]:
    """A relay to this database, and the connection string through it."""
    url = httpx.URL(dsn.replace("postgresql://", "http://"))
    relay = Relay(url.host, url.port or 5432)
    await relay.open()
    if not is_open:
        await relay.close()
    try:
        yield relay, dsn.replace(f":{url.port}/", f":{relay.port}/")
    finally:
        await relay.close()
