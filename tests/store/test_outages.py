"""What the database says of its own state becomes a refusal that a retry mends, never a fault of ours."""

import asyncpg
import pytest

from memory_plane.contracts.errors import Unavailable
from memory_plane.store.database import Pool, StatementFailed, connection


@pytest.mark.parametrize(
    ("sqlstate", "code"),
    [
        ("53100", "database_exhausted"),
        ("53200", "database_exhausted"),
        ("53300", "database_exhausted"),
        ("57P01", "database_unavailable"),
        ("57014", "statement_timeout"),
    ],
)
async def test_a_state_of_the_database_is_503_with_its_code(pool: Pool, sqlstate: str, code: str) -> None:
    with pytest.raises(Unavailable) as refused:
        async with connection(pool) as conn:
            await conn.execute(f"DO $$ BEGIN RAISE EXCEPTION 'as the server says' USING ERRCODE = '{sqlstate}'; END $$")
    assert (refused.value.code, refused.value.retry_after) == (code, 2)
    assert "server says" not in refused.value.detail


async def test_any_other_error_of_it_is_a_fault_of_ours(pool: Pool) -> None:
    with pytest.raises(StatementFailed) as failed:
        async with connection(pool) as conn:
            await conn.execute("SELECT 1 / 0")
    assert isinstance(failed.value.__context__, asyncpg.DivisionByZeroError)


async def test_a_session_that_the_driver_cannot_use_any_more_is_an_outage_and_is_not_used_again(pool: Pool) -> None:
    """As when the server ends a session between two statements: found by the chaos suite, as a 500."""
    with pytest.raises(Unavailable) as refused:
        async with connection(pool) as conn:
            broken = await conn.fetchval("SELECT pg_backend_pid()")
            raise asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")
    assert (refused.value.code, refused.value.retry_after) == ("database_unavailable", 2)
    async with connection(pool) as conn:
        assert await conn.fetchval("SELECT pg_backend_pid()") != broken
