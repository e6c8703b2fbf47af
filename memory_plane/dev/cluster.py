"""The directory of a PostgreSQL cluster: who owns it, who may start on it, and how its programs are run."""

import os
import secrets
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from memory_plane.dev.binaries import POSTGRES_MAJOR, postgres_bin, reachable, unprivileged_account
from memory_plane.dev.child import Account, Child, Command
from memory_plane.dev.errors import StackError
from memory_plane.dev.processes import working_directory

SUPERUSER = "postgres"


class Cluster:
    """``directory`` holds the cluster, the superuser's password and nothing else of importance."""

    def __init__(self, directory: Path, log: Path, trace: Path | None = None) -> None:
        self.directory = directory.absolute()
        self.path = self.directory / "cluster"
        self.log = log
        self.bin = Path()
        self._trace = trace
        self._account: Account | None = None

    def prepare(self) -> None:
        """Find account and binaries, and refuse a directory that is another's, another version's or in use."""
        self._account = self._owner() if self.path.exists() else unprivileged_account()
        self.bin = postgres_bin(self._account)
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._give_away(self.directory)
        self._refuse_other_version()
        self.refuse_running()

    def password(self) -> str:
        return (self.directory / "password").read_text().strip()

    async def ensure(self, *, durable: bool) -> None:
        """Make the cluster unless it is there. A half-made one, of a killed start, is made anew."""
        if self.path.exists():
            return
        fresh = self.directory / "cluster.new"
        shutil.rmtree(fresh, ignore_errors=True)
        self._make_password()

        def arguments(directory: str) -> list[str]:
            return [
                f"--pgdata={directory}/cluster.new",
                f"--username={SUPERUSER}",
                f"--pwfile={directory}/password",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--locale=C.UTF-8",
                "--no-instructions",
                *([] if durable else ["--no-sync"]),
            ]

        initdb = await self.run("initdb", arguments)
        try:
            code = await initdb.wait()
        finally:
            await initdb.stop()
        if code != 0:
            raise StackError(f"PostgreSQL could not make its data directory {self.path}; see {self.log}.")
        fresh.rename(self.path)

    async def run(self, program: str, arguments: Callable[[str], list[str]]) -> Child:
        """Start one of PostgreSQL's programs; ``arguments`` is called with the directory as the program can name it."""
        descriptor, directory = self._open_directory()
        try:
            return await Child.start(
                Command(
                    name="PostgreSQL",
                    argv=(str(self.bin / program), *arguments(directory)),
                    log=self.log,
                    env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
                    # Fast; and at once for a server that was asked to stop in the middle of its crash recovery, which
                    # may never end then.
                    stop_signals=((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0)),
                    death_signal=signal.SIGINT,
                    account=self._account,
                    pass_fds=() if descriptor is None else (descriptor,),
                    trace=self._trace,
                )
            )
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def refuse_running(self) -> None:
        """Refuse a cluster with a live server on it; clear a lock whose process is gone or something else by now.

        PostgreSQL itself takes any live process of our account for a server of its own, and so
        would never start again after a reboot or in a container, where process ids repeat.
        """
        lock = self.path / "postmaster.pid"
        try:
            pid = int(lock.read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return
        at = working_directory(pid)
        if at is not None and at.exists() and at.samefile(self.path):
            raise StackError(
                f"{self.path} is in use by a running PostgreSQL (process {pid}); stop it, or choose another --data-dir."
            )
        lock.unlink(missing_ok=True)

    def _owner(self) -> Account | None:
        owner = self.path.stat()
        if os.geteuid() == owner.st_uid:
            return None
        if os.geteuid() == 0:
            return Account(owner.st_uid, owner.st_gid)
        raise StackError(f"{self.path} belongs to another user; start as that user, or choose another --data-dir.")

    def _refuse_other_version(self) -> None:
        if not self.path.exists():
            return
        version_file = self.path / "PG_VERSION"
        if not version_file.exists():
            raise StackError(f"{self.path} is not a PostgreSQL cluster; move it away, or choose another --data-dir.")
        if (version := version_file.read_text().strip()) != str(POSTGRES_MAJOR):
            raise StackError(
                f"{self.path} was made by PostgreSQL {version} and this is PostgreSQL {POSTGRES_MAJOR}; dump it with "
                "the old version and restore it into a new --data-dir, or choose another --data-dir."
            )

    def _make_password(self) -> None:
        file = self.directory / "password"
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(secrets.token_hex(24) + "\n")
        self._give_away(file)

    def _give_away(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.uid, self._account.gid)

    def _open_directory(self) -> tuple[int | None, str]:
        """Name our directory by an inherited descriptor where its path is closed to the server's account.

        So a data directory below root's home or a private temporary directory needs no permission
        changed on any of its parents.
        """
        if self._account is None or reachable(self.directory, self._account):
            return None, str(self.directory)
        if not sys.platform.startswith("linux"):
            raise StackError(
                f"{self.directory} cannot be reached by the account that PostgreSQL runs under; choose a --data-dir "
                "outside of private directories, or start as another user than root."
            )
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        return descriptor, f"/proc/self/fd/{descriptor}"
