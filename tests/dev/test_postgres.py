"""The embedded PostgreSQL: starts, stops, crashes, and refusals in one sentence."""

import asyncio
import os
import signal
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from memory_plane.dev import binaries
from memory_plane.dev.binaries import postgres_bin, reachable
from memory_plane.dev.child import Account, Child, Command
from memory_plane.dev.errors import StackError
from memory_plane.dev.postgres import PostgresServer
from tests.dev.waiting import until_gone

SMALL = {"shared_buffers": "16MB", "max_connections": "20"}


@asynccontextmanager
async def running(directory: Path, **options: object) -> AsyncIterator[PostgresServer]:
    server = PostgresServer(directory, settings=SMALL, **options)  # type: ignore[arg-type]
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


async def _ask(dsn: str, query: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def _until_recovered(dsn: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                assert await _ask(dsn, "SELECT 1") == 1
            except (OSError, asyncpg.PostgresError):
                continue
            return


async def test_data_survives_a_kill_and_a_restart_in_a_path_with_spaces(tmp_path: Path) -> None:
    """Durable, in a directory that only its owner may enter: the server runs as another account when we are root."""
    directory = tmp_path / "a private place" / "pg"
    directory.parent.mkdir(mode=0o700)
    async with running(directory) as server:
        dsn = await server.ensure_database()
        assert await _ask(dsn, "SHOW fsync") == "on"
        await _ask(dsn, "CREATE TABLE kept AS SELECT 42 AS answer")
        await server.kill()
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncpg.connect(dsn)
        await server.start()
        assert await _ask(dsn, "SELECT answer FROM kept") == 42
        await server.stop()
        await server.start()
        assert await server.ensure_database() == dsn
        assert await _ask(dsn, "SELECT answer FROM kept") == 42
        first = server.child.pid
    await until_gone(first)
    assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700


async def test_it_listens_on_loopback_only_and_wants_the_password(postgres: PostgresServer) -> None:
    assert await _ask(postgres.dsn("postgres"), "SHOW listen_addresses") == "127.0.0.1"
    assert await _ask(postgres.dsn("postgres"), "SHOW unix_socket_directories") == ""
    wrong = postgres.dsn("postgres").replace(postgres.cluster.password(), "wrong")
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(wrong)


async def test_its_log_has_no_values(postgres: PostgresServer, database: str) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute("CREATE TABLE t (a text PRIMARY KEY); INSERT INTO t VALUES ('x-canary')")
    with pytest.raises(asyncpg.UniqueViolationError):
        await connection.execute("INSERT INTO t VALUES ($1)", "x-canary")
    with pytest.raises(asyncpg.InvalidTextRepresentationError):
        await connection.execute("SELECT $1::text::int", "y-canary")
    await connection.close()
    log = postgres.log.read_text()
    assert "ready to accept connections" in log
    assert "canary" not in log


async def test_two_servers_side_by_side(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "one", durable=False) as one,
        running(tmp_path / "two", durable=False) as two,
    ):
        assert one.port != two.port
        assert await _ask(one.dsn("postgres"), "SELECT 1") == await _ask(two.dsn("postgres"), "SELECT 1")


async def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path / "pg", durable=False) as server:
        second = PostgresServer(tmp_path / "pg", durable=False)
        with pytest.raises(StackError, match=rf"in use by a running PostgreSQL \(process {server.child.pid}\)"):
            await second.start()
        assert await _ask(server.dsn("postgres"), "SELECT 1") == 1


async def test_a_stale_lock_with_a_living_strangers_pid_does_not_stop_it(tmp_path: Path) -> None:
    """A stranger of the server's own account: that is the one it cannot tell from a server."""
    async with running(tmp_path / "pg", durable=False) as server:
        await server.kill()
        owner = server.cluster.path.stat()
        account = Account(owner.st_uid, owner.st_gid) if os.geteuid() == 0 else None
        stranger = await Child.start(
            Command(name="A stranger", argv=("/bin/sleep", "600"), log=tmp_path / "log", account=account)
        )
        lock = server.cluster.path / "postmaster.pid"
        lines = lock.read_text().split("\n")
        lock.write_text("\n".join([str(stranger.pid), *lines[1:]]))
        await server.start()
        assert await _ask(server.dsn("postgres"), "SELECT 1") == 1
        assert stranger.exit_code is None
        await stranger.stop()


async def test_another_versions_data_is_refused(tmp_path: Path) -> None:
    cluster = tmp_path / "pg" / "cluster"
    cluster.mkdir(parents=True)
    with pytest.raises(StackError, match="is not a PostgreSQL cluster"):
        await PostgresServer(tmp_path / "pg").start()
    (cluster / "PG_VERSION").write_text("16\n")
    with pytest.raises(StackError, match=r"made by PostgreSQL 16 and this is PostgreSQL 18; dump it"):
        await PostgresServer(tmp_path / "pg").start()


async def test_a_half_made_cluster_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "pg" / "cluster.new").mkdir(parents=True)
    (tmp_path / "pg" / "cluster.new" / "PG_VERSION").write_text("18\n")
    async with running(tmp_path / "pg", durable=False) as server:
        assert await _ask(server.dsn("postgres"), "SELECT 1") == 1


async def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=f"Port {port} for PostgreSQL is in use"):
            await PostgresServer(tmp_path / "pg", port=port, durable=False).start()


async def test_what_stops_it_from_starting_is_said(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path / "pg", durable=False, settings={"shared_buffers": "nonsense"})
    with pytest.raises(StackError, match=r'did not start \(invalid value for parameter "shared_buffers"'):
        await server.start()


async def test_a_processor_that_is_too_old_is_said_in_words(tmp_path: Path) -> None:
    """The illegal instruction is sent by hand while the probe runs."""
    async with running(tmp_path / "pg", durable=False) as server:
        dsn = await server.ensure_database()
        probe = asyncio.create_task(server.probe_processor(probe="SELECT pg_sleep(60)"))
        observer = await asyncpg.connect(dsn)
        query = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'"
        while (pid := await observer.fetchval(query)) is None:
            assert not probe.done()
        os.kill(pid, signal.SIGILL)
        with pytest.raises(StackError, match="This processor lacks instructions"):
            await probe
        observer.terminate()
        await _until_recovered(dsn)


def test_binaries_out_of_reach_are_copied_once_to_a_safe_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "reachable", lambda *_: False)
    account = Account(os.geteuid(), os.getegid())
    place = postgres_bin(account, tmp_path / "cache")
    assert place.is_relative_to(tmp_path / "cache")
    first = (place / "postgres").stat().st_ino
    assert postgres_bin(account, tmp_path / "cache") == place
    assert (place / "postgres").stat().st_ino == first
    (place / "initdb").unlink()
    assert (postgres_bin(account, tmp_path / "cache") / "initdb").exists()
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("kind", ["writable by others", "a link"])
def test_a_place_that_others_could_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(binaries, "reachable", lambda *_: False)
    cache = tmp_path / "cache"
    if kind == "a link":
        (tmp_path / "elsewhere").mkdir()
        cache.symlink_to(tmp_path / "elsewhere")
    else:
        cache.mkdir()
        cache.chmod(0o777)
    with pytest.raises(StackError, match="programs in it cannot be trusted"):
        postgres_bin(Account(os.geteuid(), os.getegid()), cache)


def test_reachable_goes_by_every_directory_on_the_way(tmp_path: Path) -> None:
    stranger = Account(54321, 54321)
    inner = tmp_path / "closed" / "open"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o700)
    assert not reachable(inner, stranger)
    assert reachable(Path("/usr/bin"), stranger)


def test_a_missing_wheel_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "_MODULE", "no_such_module")
    with pytest.raises(StackError, match="embedded PostgreSQL is not installed; run pip install"):
        postgres_bin(None)
