"""The example hosts, run as their READMEs say, against a running stack."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memory_plane.dev.checkout import checkout
from memory_plane.dev.stack import DevStack

EXAMPLES = checkout() / "examples"
OLDEST_NODE = 18
NO_NETWORK = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH")


def environment(stack: DevStack) -> dict[str, str]:
    access = stack.access
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "TEMPORAL_ADDRESS": access.temporal,
        "MEMORY_TENANT": access.tenant,
        "MEMORY_PRINCIPAL": "dev",
    }


async def output(*command: str, cwd: Path, env: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, complained = await process.communicate()
    assert process.returncode == 0, complained.decode()[-3000:]
    return said.decode()


async def test_the_python_host_ingests_by_a_child_and_finds_it_again(stack: DevStack) -> None:
    said = await output(sys.executable, "examples/python_host/host.py", cwd=checkout(), env=environment(stack))
    assert said.startswith("captured kver_")
    assert said.strip().endswith("1 chunk, found again: True")


def lacking() -> str | None:
    """Why the TypeScript host cannot be run here."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return f"node >= {OLDEST_NODE} and npm are not on the PATH"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").split(".")[0]) < OLDEST_NODE:
        return f"node is {version}, and the Temporal SDK needs {OLDEST_NODE}"
    return None


@pytest.mark.skipif(lacking() is not None, reason=f"THE TYPESCRIPT HOST WAS NOT RUN: {lacking()}")
@pytest.mark.timeout(600)
async def test_the_typescript_host_ingests_by_a_child_and_reads_the_result(stack: DevStack, tmp_path: Path) -> None:
    host = tmp_path / "typescript_host"
    shutil.copytree(EXAMPLES / "typescript_host", host, ignore=shutil.ignore_patterns("node_modules", "lib"))
    env = environment(stack)
    try:
        await output("npm", "ci", "--no-audit", "--no-fund", cwd=host, env=env)
    except AssertionError as failure:
        if any(reason in str(failure) for reason in NO_NETWORK):
            pytest.skip("THE TYPESCRIPT HOST WAS NOT RUN: its packages cannot be fetched without a network")
        raise
    await output("npm", "run", "build", cwd=host, env=env)
    said = await output("node", "lib/host.js", cwd=host, env=env)
    result = json.loads(said.strip().splitlines()[-1])
    assert (result["status"], result["embedded"], result["failed"]) == ("captured", 1, 0)
    assert result["version_id"].startswith("kver_")
