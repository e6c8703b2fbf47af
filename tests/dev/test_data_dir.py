"""The data directory: one stack at a time, what it remembers, and orphans told apart from strangers."""

import asyncio
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from memory_plane.dev.child import Child
from memory_plane.dev.data_dir import DataDir, default_data_dir
from memory_plane.dev.errors import StackError
from memory_plane.dev.private_files import write_private
from memory_plane.dev.processes import start_time
from tests.dev.conftest import WAITS, CommandFactory
from tests.dev.waiting import until_gone, until_logged


@pytest.fixture
def data_dir(tmp_path: Path) -> DataDir:
    directory = DataDir(tmp_path / "data")
    directory.acquire()
    return directory


def test_one_stack_at_a_time(data_dir: DataDir) -> None:
    with pytest.raises(StackError, match=rf"in use by another stack \(process {os.getpid()}\)"):
        DataDir(data_dir.path).acquire()
    data_dir.release()
    DataDir(data_dir.path).acquire()


def test_the_lock_goes_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys, signal; from pathlib import Path; from memory_plane.dev.data_dir import DataDir\n"
        "d = DataDir(Path(sys.argv[1])); d.acquire(); print('held', flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StackError, match=f"process {holder.pid}"):
            DataDir(tmp_path).acquire()
        holder.kill()
        holder.wait()
        DataDir(tmp_path).acquire()


def test_ports_and_secrets_are_remembered(data_dir: DataDir) -> None:
    assert data_dir.port("endpoint") is None
    data_dir.remember_port("endpoint", 23456)
    data_dir.write_secret("token", "t0k3n")
    data_dir.release()
    again = DataDir(data_dir.path)
    again.acquire()
    assert again.port("endpoint") == 23456
    assert again.read_secret("token") == "t0k3n"
    assert again.read_secret("other") is None
    assert stat.S_IMODE((data_dir.path / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE(data_dir.path.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("content", "message"),
    [('{"format": 99}', "has format 99 and this version knows 1"), ("{", "is damaged"), ("[]", "is damaged")],
)
def test_a_state_of_another_version_is_refused(data_dir: DataDir, content: str, message: str) -> None:
    data_dir.release()
    (data_dir.path / "state.json").write_text(content)
    with pytest.raises(StackError, match=message):
        DataDir(data_dir.path).acquire()


def test_a_place_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match=r"cannot be used \(.*\); choose another --data-dir"):
        DataDir(tmp_path / "file").acquire()


def test_a_full_disk_is_said_before_anything_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 7 * 1024**2))
    with pytest.raises(StackError, match=r"There are 7 MB free .* needs 512 MB"):
        DataDir(tmp_path).acquire()
    monkeypatch.undo()
    DataDir(tmp_path).acquire()


async def test_orphans_are_ended(data_dir: DataDir, python: CommandFactory) -> None:
    """As after the death of a stack and of all its guards; here the guards are alive and must go too."""
    command = python(WAITS, trace=data_dir.trace("thing"))
    orphan = await Child.start(command)
    await until_logged(command.log, "ready")
    assert await data_dir.clear_orphans() == ["thing"]
    assert start_time(orphan.pid) is None
    await until_gone(orphan.guard_pid)
    assert await data_dir.clear_orphans() == []
    assert await orphan.wait() in (128 + signal.SIGINT, 128 + signal.SIGTERM)  # its own stop signal, or ours


async def test_an_orphan_that_ignores_its_signal_is_killed(data_dir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_plane.dev.processes._PATIENCE_SECONDS", 0.2)
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True); signal.pause()"
    orphan = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert orphan.stdout is not None
    await orphan.stdout.readline()
    write_private(data_dir.trace("stubborn"), json.dumps({orphan.pid: start_time(orphan.pid)}))
    assert await data_dir.clear_orphans() == ["stubborn"]
    assert await orphan.wait() == -signal.SIGKILL


async def test_a_stranger_with_a_recycled_process_id_is_left_alone(data_dir: DataDir, python: CommandFactory) -> None:
    stranger = await Child.start(python(WAITS))
    for name, started in (("earlier", "another time"), ("unknown", None)):
        write_private(data_dir.trace(name), json.dumps({stranger.pid: started, 2**22 + 1: "gone"}))
    (data_dir.path / "run" / "torn.json").write_text("{")
    assert await data_dir.clear_orphans() == []
    assert start_time(stranger.pid) is not None
    await stranger.stop()


def test_the_default_is_below_the_users_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / "memory-plane" / "dev"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_data_dir() == Path.home() / ".local" / "share" / "memory-plane" / "dev"
