"""Children and their guards: nothing outlives the one who started it."""

import asyncio
import os
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from memory_plane.dev.child import Child, Command
from memory_plane.dev.errors import StackError
from memory_plane.dev.processes import start_time
from tests.dev.conftest import IGNORES_TERM, WAITS, CommandFactory
from tests.dev.waiting import until, until_gone, until_logged


async def test_a_child_stops_on_its_signal(python: CommandFactory) -> None:
    command = python(WAITS)
    child = await Child.start(command)
    await until_logged(command.log, "ready")
    assert child.exit_code is None
    assert await child.stop() == 128 + signal.SIGTERM
    assert start_time(child.pid) is None


async def test_its_exit_code_is_told(python: CommandFactory) -> None:
    child = await Child.start(python("raise SystemExit(7)"))
    assert await child.wait() == 7
    assert await child.stop() == 7
    assert await child.kill() == 7


async def test_a_kill_is_a_kill(python: CommandFactory) -> None:
    child = await Child.start(python(IGNORES_TERM))
    assert await child.kill() == 128 + signal.SIGKILL
    await until_gone(child.pid, child.guard_pid)


async def test_one_that_ignores_its_signal_is_killed_after_the_grace(python: CommandFactory) -> None:
    command = python(IGNORES_TERM, stop_signals=((signal.SIGTERM, 0.1),))
    child = await Child.start(command)
    await until_logged(command.log, "ready")
    assert await child.stop() == 128 + signal.SIGKILL


async def test_a_program_that_is_not_there_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"The thing cannot be started \(.*no-such-program"):
        await Child.start(Command(name="The thing", argv=("/no-such-program",), log=tmp_path / "log"))


async def test_what_a_child_leaves_in_its_group_ends_with_it(python: CommandFactory) -> None:
    code = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "print('grandchild', p.pid, flush=True)\n"
    )
    command = python(code)
    child = await Child.start(command)
    assert await child.wait() == 0
    await until_gone(int(command.log.read_text().split()[1]))


async def test_a_child_dies_with_its_guard(python: CommandFactory) -> None:
    command = python(IGNORES_TERM)
    child = await Child.start(command)
    await until_logged(command.log, "ready")
    os.kill(child.guard_pid, signal.SIGKILL)
    await until_gone(child.pid)
    assert await child.wait() == -signal.SIGKILL


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_children_end_when_their_parent_dies_however_it_dies(
    python: CommandFactory, tmp_path: Path, how: signal.Signals
) -> None:
    parent_code = textwrap.dedent("""
        import asyncio, sys
        from pathlib import Path
        from memory_plane.dev.child import Child, Command

        async def main():
            log = Path(sys.argv[1])
            argv = (sys.executable, "-c", sys.argv[2])
            child = await Child.start(Command(name="x", argv=argv, log=log, stop_signals=((15, 0.2),)))
            print(child.pid, child.guard_pid, flush=True)
            await asyncio.Event().wait()

        asyncio.run(main())
    """)
    log = tmp_path / "child.log"
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", parent_code, log, IGNORES_TERM), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert parent.stdout is not None
        pids = [int(word) for word in (await parent.stdout.readline()).split()]
        await until_logged(log, "ready")
    finally:
        parent.send_signal(how)
        await parent.wait()
    assert len(pids) == 2
    await until_gone(*pids)


async def test_its_processes_are_noted(python: CommandFactory, tmp_path: Path) -> None:
    child = await Child.start(python(WAITS, trace=tmp_path / "run" / "thing.json"))
    assert str(child.pid) in (tmp_path / "run" / "thing.json").read_text()
    await child.stop()


async def test_an_overlong_log_is_set_aside(python: CommandFactory, tmp_path: Path) -> None:
    log = tmp_path / "program.log"
    with log.open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    child = await Child.start(python("print('anew')"))
    await child.wait()
    assert log.read_text() == "anew\n"
    assert (tmp_path / "program.log.1").stat().st_size == 17 * 1024 * 1024
    await until(lambda: child.exit_code == 0)


async def test_stop_signals_are_sent_one_after_the_other(python: CommandFactory) -> None:
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
    command = python(code, stop_signals=((signal.SIGINT, 0.1), (signal.SIGQUIT, 30.0)))
    child = await Child.start(command)
    await until_logged(command.log, "ready")
    assert await child.stop() == 128 + signal.SIGQUIT
