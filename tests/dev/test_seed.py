"""What a fresh stack begins with: a token, and rules for that principal alone."""

import asyncpg
import pytest

from memory_plane.dev.errors import StackError
from memory_plane.dev.seed import ACTIONS, migrated, seeded
from memory_plane.store import tokens
from memory_plane.store.grants import list_rules, revoke_rule
from tests.fixtures.database import MIGRATIONS


async def test_the_token_is_kept_and_the_rules_are_explicit(database: str) -> None:
    first = await seeded(database, None)
    assert first.fresh
    connection = await asyncpg.connect(database)
    known = await tokens.resolve(connection, first.token)
    assert known is not None
    assert (known.tenant_id, known.principal_id) == ("dev", "dev")
    rules = await list_rules(connection, "dev")
    assert {(rule.principal_id, rule.resource, rule.action, rule.effect.value) for rule in rules} == {
        ("dev", "memory", action, "allow") for action in ACTIONS
    }

    await revoke_rule(connection, "dev", rules[0].id)
    again = await seeded(database, first.token)
    assert (again.token, again.fresh) == (first.token, False)
    assert len(await list_rules(connection, "dev")) == len(ACTIONS) - 1
    await connection.close()


async def test_a_token_that_the_database_does_not_take_is_replaced(database: str) -> None:
    first = await seeded(database, "mpt_of-another-database")
    assert first.fresh
    connection = await asyncpg.connect(database)
    (known,) = await tokens.list_tokens(connection, "dev")
    await tokens.revoke(connection, known.id)
    second = await seeded(database, first.token)
    assert second.fresh
    assert second.token != first.token
    assert len(await list_rules(connection, "dev")) == len(ACTIONS)
    await connection.close()


async def test_a_database_that_cannot_be_reached_is_said_without_its_password() -> None:
    with pytest.raises(StackError, match="does not take a connection") as caught:
        await migrated("postgresql://u:hunter2@127.0.0.1:9/x", "english", MIGRATIONS)
    assert "hunter2" not in str(caught.value)


async def test_a_language_that_the_column_does_not_have_stops_the_start(database: str) -> None:
    with pytest.raises(StackError, match="FTS_LANGUAGE is german"):
        await migrated(database, "german", MIGRATIONS)
