"""What a host installs: the wheel alone, with pydantic and nexus-rpc beside it, is enough for the contracts."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest

from memory_plane.dev.checkout import checkout

HOST_INSTALLS = ("pydantic", "nexus-rpc")
IMPORTS_ALL = """
import importlib, pkgutil, sys
sys.path[:0] = sys.argv[1:]
import memory_plane.contracts
names = [each.name for each in pkgutil.iter_modules(memory_plane.contracts.__path__)]
for name in names:
    importlib.import_module(f"memory_plane.contracts.{name}")
print(memory_plane.__file__)
print(*names)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)],
        cwd=checkout(),
        check=True,
        capture_output=True,
    )
    (built,) = directory.glob("*.whl")
    return built


def closure(names: tuple[str, ...]) -> Iterator[str]:
    """These distributions and all that they require without extras, as an installer would bring them."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        waiting += [
            re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            for requirement in requires(name) or ()
            if "extra ==" not in requirement and "python_version" not in requirement
        ]


def bare_packages(directory: Path) -> None:
    """A directory of packages with what a host has, and nothing else of this environment."""
    for name in closure(HOST_INSTALLS):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (directory / top).symlink_to(Path(str(found.locate_file(top))))


def test_it_carries_the_library_and_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"memory_plane"}


def test_contracts_import_with_pydantic_and_nexus_rpc_only(wheel: Path, tmp_path: Path) -> None:
    bare_packages(tmp_path)
    command = [sys.executable, "-I", "-S", "-c", IMPORTS_ALL, str(wheel), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    where, names = done.stdout.splitlines()
    assert where.startswith(str(wheel))
    assert {"names", "wire", "workflows", "hosting", "nexus"} <= set(names.split())


def test_the_bare_directory_has_nothing_of_the_service(tmp_path: Path) -> None:
    bare_packages(tmp_path)
    tops = {path.name for path in tmp_path.iterdir()}
    assert not tops & {"temporalio", "asyncpg", "fastapi", "httpx", "pydantic_settings"}
