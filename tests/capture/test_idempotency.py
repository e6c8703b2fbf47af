"""A key and a body give one answer, however often, however many at once, whatever was lost on the way."""

from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest

from memory_plane.contracts.errors import Conflict, Invalid, KeyReused
from memory_plane.plane import capture, capture_transaction
from memory_plane.settings import Settings
from memory_plane.store import captures, documents, idempotency, locks
from memory_plane.store.database import Connection, transaction
from tests.capture.memory import Memory


class Died(Exception):
    """Stands for a process that is gone, or a client that is."""


def dies_after(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def dying(*args: Any, **named: Any) -> Any:
        await original(*args, **named)
        raise Died

    return dying


STEPS: dict[str, ModuleType] = {
    "enter_capture": locks,
    "insert_or_lock": documents,
    "write": captures,
    "append_events": capture_transaction,
    "in_transaction": capture,
}


@pytest.mark.parametrize("step", STEPS)
async def test_inv_06_whenever_the_first_attempt_dies_the_retry_makes_one_version(
    memory: Memory, settings: Settings, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """After the commit the answer is lost and the version is there; before it, nothing is."""
    committed = step == "in_transaction"
    # Only a named document is asked for before it is written.
    fields = {"external_ref": "note"} if step == "insert_or_lock" else {}
    with monkeypatch.context() as patched:
        patched.setattr(STEPS[step], step, dies_after(vars(STEPS[step])[step]))
        with pytest.raises(Died):
            await memory.add(key="k", **fields)
    assert await memory.count("version") == int(committed)

    retried = await memory.restarted(settings).add(key="k", **fields)

    assert (retried.status, retried.replayed) == ("captured", committed)
    for table in ("document", "version", "raw_capture", "chunk", "feed_event", "idempotency_key"):
        assert await memory.count(table) == 1, table


async def test_the_same_key_and_body_give_the_same_ids_and_status(memory: Memory) -> None:
    first = await memory.add(key="k", external_ref="note")
    noop = await memory.add(key="k2", external_ref="note")
    again, noop_again = await memory.add(key="k", external_ref="note"), await memory.add(key="k2", external_ref="note")

    assert (again.document_id, again.version_id, again.status) == (first.document_id, first.version_id, "captured")
    assert (noop_again.version_id, noop_again.status) == (first.version_id, "noop")
    assert [first.replayed, noop.replayed, again.replayed, noop_again.replayed] == [False, False, True, True]
    assert await memory.count("feed_event") == 1


async def test_a_replay_changes_nothing_though_the_document_has_moved_on(memory: Memory) -> None:
    first = await memory.add(key="k", external_ref="note", text="one")
    await memory.add(external_ref="note", text="two")
    seen = (await memory.document(first.document_id))["last_seen_at"]

    again = await memory.add(key="k", external_ref="note", text="one")

    assert again.version_id == first.version_id
    assert [row["status"] for row in await memory.chain(first.document_id)] == ["superseded", "active"]
    assert (await memory.document(first.document_id))["last_seen_at"] == seen


async def test_another_body_under_a_key_is_refused(memory: Memory) -> None:
    await memory.add(key="k", text="one")
    with pytest.raises(KeyReused):
        await memory.add(key="k", text="two")
    assert await memory.count("version") == 1


async def test_a_key_is_one_principals_own(memory: Memory) -> None:
    first, second = await memory.add("alice", key="k"), await memory.add("bob", key="k", text="another")
    assert first.document_id != second.document_id


async def test_a_key_is_forgotten_after_its_day(memory: Memory) -> None:
    await memory.add(key="k", text="one")
    (row,) = await memory.rows("idempotency_key")
    assert (row["expires_at"] - row["created_at"]).total_seconds() == pytest.approx(24 * 3600, abs=1)
    await memory.pool.execute("UPDATE memory.idempotency_key SET expires_at = clock_timestamp()")

    second = await memory.add(key="k", text="two")

    assert not second.replayed
    assert (await memory.add(key="k", text="two")).replayed
    assert await memory.count("idempotency_key") == 1


async def test_keys_past_their_day_are_cleared_in_portions(memory: Memory) -> None:
    await memory.pool.execute("DELETE FROM memory.idempotency_key")
    for n in range(5):
        await memory.add(key=f"k{n}")
    await memory.pool.execute("UPDATE memory.idempotency_key SET expires_at = clock_timestamp() WHERE key <> 'k0'")
    async with transaction(memory.pool) as conn:
        assert [await idempotency.expire(conn, 3), await idempotency.expire(conn, 3)] == [3, 1]
    assert [row["key"] for row in await memory.rows("idempotency_key")] == ["k0"]


async def test_a_second_request_in_flight_is_told_to_come_back(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "KEY_WAIT_MS", 50)
    async with transaction(memory.pool) as first:
        await locks.lock_key(first, memory.tenant, "alice", "k")
        with pytest.raises(Conflict) as refused:
            await memory.add(key="k")
    assert refused.value.code == "idempotency_key_in_use"
    assert refused.value.retry_after is not None


async def test_the_bound_on_waiting_is_the_keys_alone(memory: Memory) -> None:
    async with transaction(memory.pool) as conn:
        await locks.enter_capture(conn, memory.tenant, "alice", "k")
        assert await conn.fetchval("SHOW lock_timeout") == "0"


async def test_a_refused_add_leaves_its_key_free(memory: Memory) -> None:
    with pytest.raises(Invalid):
        await memory.add(key="k", derived_from=["kver_unknown"])
    assert not (await memory.add(key="k")).replayed


@pytest.mark.parametrize("key", ["", "k" * 256, "k\x00"])
async def test_a_key_that_cannot_be_one_is_refused(memory: Memory, key: str) -> None:
    with pytest.raises(Invalid):
        await memory.add(key=key)
    assert await memory.count("document") == 0


async def test_a_key_row_tells_nothing_of_the_body(
    memory: Memory, settings: Settings, connect: Callable[[], Awaitable[Connection]]
) -> None:
    await memory.add(key="k", external_ref="one")
    await memory.add(key="k2", external_ref="one")
    one, two = await memory.rows("idempotency_key")
    assert one["body_hash"] == two["body_hash"], "the same body"
    conn = await connect()
    await conn.execute("UPDATE memory.installation SET hash_key = 'another installation'")
    other = memory.restarted(settings)
    await other.add(key="k3", external_ref="one")
    (three,) = await memory.rows("idempotency_key", "key = 'k3'")
    assert three["body_hash"] != one["body_hash"], "without the installation's key it cannot be guessed"
