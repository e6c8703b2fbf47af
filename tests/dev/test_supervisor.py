"""Keeping parts up: restart after a death, give up on a crash loop, stay down when asked to."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_plane.dev import supervisor
from memory_plane.dev.child import Child, Command
from memory_plane.dev.errors import StackError
from memory_plane.dev.parts import Program
from memory_plane.dev.processes import start_time
from memory_plane.dev.supervisor import Supervised
from tests.dev.conftest import WAITS, CommandFactory
from tests.dev.waiting import until, until_gone


class Watched:
    """A supervised program with what was said about it."""

    def __init__(self, command: Command, ready: Callable[[Child], bool] = lambda _: True) -> None:
        async def probe(child: Child) -> bool:
            return ready(child)

        self.said: list[str] = []
        self.gave_up: asyncio.Future[StackError] = asyncio.get_running_loop().create_future()
        self.part = Program("The thing", command, probe, patience=5.0)
        self.supervised = Supervised("thing", self.part, say=self.said.append, give_up=self.gave_up.set_result)

    async def died(self, times: int) -> None:
        await until(lambda: sum("ended unexpectedly" in line for line in self.said) >= times)


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_PAUSE_SECONDS", 0.01)


async def test_a_part_that_dies_is_started_again_and_said(python: CommandFactory) -> None:
    watched = Watched(python(WAITS))
    await watched.supervised.start()
    first = watched.part.child.pid
    os.kill(first, signal.SIGKILL)
    await watched.died(1)
    await watched.supervised.ready()
    assert watched.part.child.pid != first
    assert watched.said[0].startswith("thing ended unexpectedly (signal 9); starting it again in ")
    assert str(watched.part.log) in watched.said[0]
    await until(lambda: watched.said[-1] == "thing is up again")
    await watched.supervised.stop()
    assert not watched.gave_up.done()


async def test_a_crash_loop_is_given_up_with_the_log_named(python: CommandFactory) -> None:
    watched = Watched(python("raise SystemExit(3)"))
    await watched.supervised.start()
    failure = await watched.gave_up
    assert "exit code 3" in str(failure)
    assert str(watched.part.log) in str(failure)
    await watched.supervised.stop()


async def test_one_that_does_not_come_back_is_given_up(python: CommandFactory, tmp_path: Path) -> None:
    """It starts once; from then on it ends before it is ready."""
    marker = tmp_path / "marker"
    code = (
        f"import os, signal; marker = {str(marker)!r}\n"
        "os.path.exists(marker) and os._exit(4); open(marker, 'w'); signal.pause()"
    )
    watched = Watched(python(code), ready=lambda child: marker.exists() and child.exit_code is None)
    await watched.supervised.start()
    os.kill(watched.part.child.pid, signal.SIGKILL)
    assert "exit code 4" in str(await watched.gave_up)
    await watched.supervised.stop()


async def test_what_is_killed_or_stopped_on_purpose_stays_down(python: CommandFactory) -> None:
    watched = Watched(python(WAITS))
    await watched.supervised.start()
    for end in (watched.supervised.kill, watched.supervised.stop):
        first = watched.part.child.pid
        await end()
        assert start_time(first) is None
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watched.supervised.ready(), 0.05)
        await watched.supervised.start()
        await watched.supervised.ready()
    await watched.supervised.stop()
    assert watched.said == []


async def test_a_stop_in_the_middle_of_a_restart_leaves_nothing(python: CommandFactory) -> None:
    starts = 0

    def ready(_: Child) -> bool:
        return starts == 0

    watched = Watched(python(WAITS), ready)
    await watched.supervised.start()
    first = watched.part.child.pid
    starts = 1
    os.kill(first, signal.SIGKILL)
    await until(lambda: watched.part.child.pid != first)
    second = watched.part.child.pid
    await watched.supervised.stop()
    await until_gone(first, second)


async def test_one_that_is_never_ready_is_said(python: CommandFactory) -> None:
    watched = Watched(python(WAITS), ready=lambda _: False)
    watched.part._patience = 0.2
    with pytest.raises(StackError, match=r"The thing was not ready within .*; see .*program\.log"):
        await watched.supervised.start()
    await until_gone(watched.part.child.pid)
    assert sys.executable in watched.part.child.command.argv


async def test_a_program_that_says_why_it_cannot_start_is_quoted(python: CommandFactory) -> None:
    async def never(_: Child) -> bool:
        return False

    command = python("raise SystemExit('There is no model; install one.')")
    with pytest.raises(StackError, match=r"^There is no model; install one\.$"):
        await Program("The thing", command, never, speaks=True).start()
    with pytest.raises(StackError, match=r"^The thing ended at start with exit code 1; see .*program\.log\.$"):
        await Program("The thing", command, never).start()
