"""`memory dev` as a person and a script use it: one process tree that starts, survives, stops and leaves nothing."""

import asyncio
import json
import signal
import stat
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_plane.dev.stack import PARTS, DevStack
from tests.dev.waiting import until, until_gone
from tests.fixtures.stack import clean_environment

# Each start is several Python processes; on a busy machine with two cores that is half a minute.
START_SECONDS = 240.0
pytestmark = pytest.mark.timeout(600)


@dataclass
class Running:
    """A `memory dev` process."""

    process: asyncio.subprocess.Process
    data_dir: Path
    console: Path
    ready_file: Path

    @property
    def access(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ready_file.read_text())
        return found

    def pids(self) -> list[int]:
        """Every process that it has started and noted: the parts and their guards."""
        files = (self.data_dir / "run").glob("*.json")
        return [int(pid) for file in files for pid in json.loads(file.read_text())]

    def call(self, verb: str, path: str, **options: Any) -> httpx.Response:
        access = self.access
        return httpx.request(
            verb,
            f"{access['api']}/api/tenants/{access['tenant']}/memory/{path}",
            headers={"Authorization": f"Bearer {access['token']}"},
            timeout=30.0,
            trust_env=False,
            **options,
        )

    async def ended(self, signum: signal.Signals | None = None) -> int:
        if signum is not None:
            self.process.send_signal(signum)
        return await asyncio.wait_for(self.process.wait(), START_SECONDS)


def _prepared(place: Path, data_dir: Path | None) -> tuple[Path, Path, Path]:
    place.mkdir(exist_ok=True)
    return data_dir or place / "data", place / "console", place / "ready.json"


async def memory_dev(place: Path, *arguments: str, data_dir: Path | None = None, **environment: str) -> Running:
    """Start `memory dev` and return at once."""
    data, console, ready_file = _prepared(place, data_dir)
    with console.open("w") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "memory_plane.cli.main", "dev", "--data-dir", str(data)),
            *("--ready-file", str(ready_file), *arguments),
            stdout=output,
            stderr=output,
            env={**clean_environment(), **environment},
        )
    return Running(process, data, console, ready_file)


async def until_ready(running: Running) -> None:
    def ready_or_over() -> bool:
        return running.ready_file.exists() or running.process.returncode is not None

    await until(ready_or_over, seconds=START_SECONDS, what="memory dev")
    assert running.process.returncode is None, running.console.read_text()


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A `memory dev` that is ready; it must end cleanly when all is done."""
    started = await memory_dev(tmp_path_factory.mktemp("dev") / "first")
    await until_ready(started)
    yield started
    pids = started.pids()
    assert await started.ended(signal.SIGTERM) == 0
    await until_gone(*pids)


async def test_it_says_how_to_reach_it(running: Running) -> None:
    access = running.access
    assert stat.S_IMODE(running.ready_file.stat().st_mode) == 0o600
    assert set(access) == {"api", "temporal", "temporal_ui", "database", "tenant", "token"}
    assert (access["tenant"], running.call("GET", "list").status_code) == ("dev", 200)
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as client:
        assert (await client.get(access["temporal_ui"])).status_code == 200
    console = running.console.read_text()
    for told in (access["api"], access["temporal_ui"], access["token"], "Ctrl-C stops everything"):
        assert told in console
    assert len(running.pids()) >= 2 * len(PARTS)


async def test_what_another_one_may_not_share_is_said_in_one_sentence(running: Running, tmp_path: Path) -> None:
    same = await memory_dev(tmp_path / "same", data_dir=running.data_dir)
    port = running.access["api"].rpartition(":")[2]
    taken = await memory_dev(tmp_path / "taken", "--port", port)
    assert (await same.ended(), await taken.ended()) == (1, 1)
    assert f"is in use by another stack (process {running.process.pid})" in same.console.read_text()
    assert f"Port {port} is in use; stop what uses it" in taken.console.read_text()
    assert len(same.console.read_text().splitlines()) == len(taken.console.read_text().splitlines()) == 1


async def test_a_second_copy_lives_beside_it_is_killed_and_comes_back_with_everything(
    running: Running, tmp_path: Path
) -> None:
    other = await memory_dev(tmp_path / "other", "--port", "0")
    await until_ready(other)
    before = other.access
    for name in ("api", "temporal", "temporal_ui", "database", "token"):
        assert before[name] != running.access[name]
    added = other.call("POST", "add", json={"title": "Only here", "text": "the other copy's note"})
    assert added.status_code == 200
    assert running.call("GET", "list").json()["events"] == []
    endpoint_port = _endpoint_port(other)

    pids = other.pids()
    assert await other.ended(signal.SIGKILL) == -signal.SIGKILL
    await until_gone(*pids)
    assert running.call("GET", "list").status_code == 200

    again = await memory_dev(tmp_path / "again", data_dir=other.data_dir)
    await until_ready(again)
    assert again.access["token"] == before["token"]
    assert _endpoint_port(again) == endpoint_port
    document = again.call("GET", f"documents/{added.json()['documentId']}")
    assert document.json()["text"] == "the other copy's note"

    pids = again.pids()
    assert await again.ended(signal.SIGINT) == 0
    await until_gone(*pids)
    assert not again.ready_file.exists()


def _endpoint_port(running: Running) -> int:
    state = json.loads((running.data_dir / "state.json").read_text())
    return int(state["ports"]["endpoint"])


async def test_a_stop_in_the_middle_of_a_start_leaves_nothing(tmp_path: Path) -> None:
    started = await memory_dev(tmp_path / "early")
    await until(lambda: len(started.pids()) >= 2, what="the first part")
    pids = started.pids()
    assert await started.ended(signal.SIGINT) == 0
    await until_gone(*pids, *started.pids())
    assert not started.ready_file.exists()


async def test_a_part_that_cannot_start_ends_it_in_one_sentence(tmp_path: Path) -> None:
    started = await memory_dev(tmp_path / "wrong", MEMORY_LOG_LEVEL="nonsense")
    assert await started.ended() == 1
    assert f"see {started.data_dir}/logs/" in started.console.read_text()
    await until_gone(*started.pids())


@pytest.mark.parametrize("name", PARTS)
async def test_each_part_comes_back_after_a_kill(stack: DevStack, name: str) -> None:
    killed = stack.pid(name)
    await stack.kill(name)
    await until_gone(killed)
    await stack.restart(name)
    assert stack.pid(name) != killed
    async with httpx.AsyncClient(base_url=stack.access.api, trust_env=False) as client:
        assert (await client.get("/healthz")).status_code == 200
