"""The proxy does to a connection what it says."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from memory_plane.dev.ports import HOST
from tests.chaos.proxy import TcpProxy


@pytest.fixture
async def proxy() -> AsyncIterator[TcpProxy]:
    """Before a server that answers each line with itself."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, HOST, 0)
    async with server, TcpProxy(server.sockets[0].getsockname()[1]) as made:
        yield made


async def ask(proxy: TcpProxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(HOST, proxy.port)
    writer.write(b"one\n")
    assert await reader.readline() == b"one\n"
    return reader, writer


async def test_what_is_cut_is_reset_and_new_connections_pass(proxy: TcpProxy) -> None:
    reader, _ = await ask(proxy)
    proxy.cut()
    with pytest.raises(ConnectionResetError):
        await reader.readexactly(1)
    await ask(proxy)


async def test_who_is_refused_is_reset_until_it_is_mended(proxy: TcpProxy) -> None:
    await ask(proxy)
    proxy.refuse()
    with pytest.raises(OSError):
        await ask_or_end(proxy)
    proxy.heal()
    await ask(proxy)


async def ask_or_end(proxy: TcpProxy) -> None:
    reader, writer = await asyncio.open_connection(HOST, proxy.port)
    writer.write(b"one\n")
    if not await reader.readline():
        raise ConnectionResetError


async def test_what_is_stalled_comes_once_it_flows_again(proxy: TcpProxy) -> None:
    reader, writer = await ask(proxy)
    proxy.stall()
    writer.write(b"two\n")
    answer = asyncio.create_task(reader.readline())
    done, _ = await asyncio.wait([answer], timeout=0.2)
    assert not done
    proxy.heal()
    assert await answer == b"two\n"
