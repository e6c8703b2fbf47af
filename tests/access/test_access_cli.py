"""The commands that hand out tokens, grants and roles: JSON to read, sentences to go by, effect on the next request."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from api.token_identity import TokenResolver
from memory_plane.contracts.enums import Verb
from memory_plane.core.caller import Caller
from memory_plane.plane.access import Access
from memory_plane.store.database import Pool
from memory_plane.store.grants import PostgresGrantStore
from tests.access.test_tokens import request

PROGRAM = """
import typer
from memory_plane.cli import access
app = typer.Typer()
for name in ("token", "grant", "role"):
    app.add_typer(getattr(access, name), name=name)
app()
"""


class Cli:
    """Runs the commands in a process of their own: they start an event loop each."""

    def __init__(self, database: str) -> None:
        self._environment = {**os.environ, "DATABASE_URL": database}

    def __call__(self, *arguments: str, code: int = 0) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        if code:
            assert "Traceback" not in done.stderr
            return done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout


@pytest.fixture
def cli(database: str) -> Cli:
    return Cli(database)


async def test_tokens_are_issued_listed_rotated_and_revoked(cli: Cli, pool: Pool) -> None:
    issued = cli("token", "issue", "--tenant", "t", "--principal", "bob", "--expires", "30d", "--label", "ci", "--json")
    assert issued["token"].startswith("mpt_") and issued["expiresAt"] and issued["state"] == "active"
    resolver = TokenResolver(pool, cache_seconds=0)
    assert await resolver(request(f"Bearer {issued['token']}")) == Caller("t", "bob")
    rotated = cli("token", "rotate", issued["id"], "--overlap", "0s", "--json")
    assert await resolver(request(f"Bearer {issued['token']}")) is None
    assert await resolver(request(f"Bearer {rotated['token']}")) == Caller("t", "bob")
    assert cli("token", "revoke", rotated["id"], "--json")["state"] == "revoked"
    assert await resolver(request(f"Bearer {rotated['token']}")) is None
    listed = cli("token", "list", "--tenant", "t", "--json")["tokens"]
    assert [row["state"] for row in listed] == ["expired", "revoked"]
    assert issued["token"] not in json.dumps(listed)
    assert cli("token", "list", "--tenant", "other", "--json") == {"tokens": []}
    assert "no token of this id" in cli("token", "revoke", "mtok_x", code=1)
    assert "white space" in cli("token", "issue", "--tenant", "t", "--principal", "bob ", code=1)
    assert "30d" in cli("token", "issue", "--tenant", "t", "--principal", "bob", "--expires", "soon", code=2)


async def test_inv_28_grants_and_roles_act_on_the_next_request(cli: Cli, pool: Pool) -> None:
    access = Access(PostgresGrantStore(pool))

    async def may_add() -> bool:
        return (await access.visibility(Caller("t", "bob"))).can(Verb.ADD)

    assert not await may_add()
    words = ("--tenant", "t", "--resource", "memory", "--action", "add")
    rule = cli("grant", "add", "--principal", "bob", *words, "--json")
    assert await may_add()
    assert cli("grant", "list", "--tenant", "t", "--principal", "bob", "--json")["grants"] == [rule]
    assert "no rule of this id" in cli("grant", "revoke", rule["id"], "--tenant", "other", code=1)
    cli("grant", "revoke", rule["id"], "--tenant", "t")
    assert not await may_add()

    cli("grant", "add", "--role", "writer", *words, "--expires", "1h")
    assert not await may_add()
    cli("role", "assign", "--tenant", "t", "--principal", "bob", "--role", "writer", "--json")
    assert await may_add()
    assert cli("role", "list", "--tenant", "t", "--json") == {"roles": [{"principalId": "bob", "roleId": "writer"}]}
    cli("role", "remove", "--tenant", "t", "--principal", "bob", "--role", "writer")
    assert not await may_add()
    assert "does not have" in cli("role", "remove", "--tenant", "t", "--principal", "bob", "--role", "writer", code=1)


def test_a_rule_that_could_never_apply_is_refused_where_it_is_written(cli: Cli) -> None:
    words = ("grant", "add", "--tenant", "t", "--resource", "memory", "--action", "add")
    assert "one of --principal and --role" in cli(*words, code=2)
    bob = (*words, "--principal", "bob")
    assert "allow" in cli(*bob, "--effect", "maybe", code=2)
    assert "JSON" in cli(*bob, "--conditions", "{", code=2)
    assert "moonPhase" in cli(*bob, "--conditions", '{"moonPhase": 1}', code=2)
    equal = '{"time_window": {"after": "09:00", "before": "09:00"}}'
    assert "equal ends" in cli(*bob, "--conditions", equal, code=2)
    fly = cli(*words[:-1], "fly", "--principal", "bob", code=2)
    assert "no action 'fly'" in fly
    assert "one of add, search, forget, purge, operate, or *" in fly
    night = '{"time_window": {"after": "22:00", "before": "06:00", "timezone": "Europe/Berlin"}}'
    assert cli(*bob, "--conditions", night, "--json")["conditions"]["time_window"]["after"] == "22:00"


def test_a_database_without_our_tables_is_told_in_a_sentence(empty_database: str) -> None:
    assert "memory migrate" in Cli(empty_database)("token", "list", "--tenant", "t", code=1)


def test_a_database_that_is_down_is_told_in_a_sentence() -> None:
    nowhere = Cli("postgresql://nobody@127.0.0.1:9/none")
    assert "cannot be reached" in nowhere("token", "list", "--tenant", "t", code=1)
