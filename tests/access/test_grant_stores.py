"""The two grant stores of ours behave alike; share rules come and go with their documents."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from memory_plane.contracts.enums import GrantEffect, GrantOrigin, Verb
from memory_plane.contracts.errors import Forbidden, Invalid
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.caller import Caller
from memory_plane.core.conditions import SHIPPED_CONDITIONS
from memory_plane.core.grants import GrantRule
from memory_plane.plane.access import Access
from memory_plane.plane.engine import Engine
from memory_plane.plane.ports import WritableGrantStore
from memory_plane.settings import Settings
from memory_plane.store import grants
from memory_plane.store.database import Pool, connection
from tests.access import seed

AssignRole = Callable[[str, str, str], Awaitable[None]]
Stores = tuple[WritableGrantStore, AssignRole]


@pytest.fixture(params=["postgres", "memory"])
def stores(request: pytest.FixtureRequest, pool: Pool) -> Stores:
    if request.param == "memory":
        in_memory = grants.InMemoryGrantStore()

        async def remember(tenant: str, principal: str, role: str) -> None:
            in_memory.assign_role(tenant, principal, role)

        return in_memory, remember

    async def assign(tenant: str, principal: str, role: str) -> None:
        async with connection(pool) as conn:
            await grants.assign_role(conn, tenant, principal, role)

    return grants.PostgresGrantStore(pool), assign


def role_rule(role: str, resource: str) -> GrantRule:
    return GrantRule(
        new_id(IdKind.GRANT_RULE),
        None,
        role,
        resource,
        "search",
        GrantEffect.ALLOW,
        GrantOrigin.ROLE,
        {"memoryShare": {"n": 1}},
    )


async def test_collects_own_and_role_rules_of_one_tenant(stores: Stores) -> None:
    store, assign = stores
    own, foreign, of_role = seed.allow("bob", "memory"), seed.allow("bob", "memory"), role_rule("reader", "memory.x:*")
    await store.put_grant("t", own)
    await store.put_grant("other", foreign)
    await store.put_grant("t", of_role)
    await store.put_grant("t", seed.allow("alice", "memory"))
    assert {rule.id for rule in await store.collect_grants("bob", "t")} == {own.id}
    await assign("t", "bob", "reader")
    await assign("other", "bob", "unheard")
    collected = {rule.id: rule for rule in await store.collect_grants("bob", "t")}
    assert set(collected) == {own.id, of_role.id}
    assert collected[of_role.id] == of_role


async def test_put_replaces_by_id_in_its_own_tenant_only(stores: Stores) -> None:
    store, _ = stores
    rule = seed.allow("bob", "memory")
    await store.put_grant("t", rule)
    await store.put_grant("other", rule)
    rule = GrantRule(rule.id, "bob", None, "memory", "search", GrantEffect.DENY, GrantOrigin.SYSTEM)
    await store.put_grant("other", rule)
    assert [r.effect for r in await store.collect_grants("bob", "t")] == [GrantEffect.ALLOW]
    assert [r.effect for r in await store.collect_grants("bob", "other")] == [GrantEffect.DENY]
    assert not await store.revoke("third", rule.id)
    assert await store.revoke("other", rule.id)
    assert not await store.revoke("other", rule.id)
    assert len(await store.collect_grants("bob", "t")) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"role_id": "r"},
        {"principal_id": None},
        {"principal_id": " "},
        {"resource": ""},
        {"action": " "},
        {"resource": "a\x00b"},
        {"action": "\ud800"},
        {"expires_at": datetime(2030, 1, 1)},  # noqa: DTZ001 - the fault
    ],
)
async def test_malformed_rules_are_refused(stores: Stores, changes: dict[str, object]) -> None:
    store, _ = stores
    rule = seed.allow("bob", "memory")
    for name, value in changes.items():
        setattr(rule, name, value)
    with pytest.raises(Invalid):
        await store.put_grant("t", rule)


async def test_inv_28_an_expired_or_revoked_grant_acts_on_the_next_request(stores: Stores) -> None:
    store, _ = stores
    access = Access(store)
    caller = Caller("t", "bob")
    rule = seed.allow("bob", "memory", "add")
    await store.put_grant("t", rule)
    access.require(await access.visibility(caller), Verb.ADD)
    rule.expires_at = datetime.now(UTC) - timedelta(microseconds=1)
    await store.put_grant("t", rule)
    with pytest.raises(Forbidden, match="memory:add"):
        access.require(await access.visibility(caller), Verb.ADD)
    rule.expires_at = datetime.now(UTC) + timedelta(hours=1)
    await store.put_grant("t", rule)
    access.require(await access.visibility(caller), Verb.ADD)
    assert await store.revoke("t", rule.id)
    with pytest.raises(Forbidden) as refused:
        access.require(await access.visibility(caller), Verb.ADD)
    assert refused.value.code == "capability_missing"


async def test_sharing_twice_is_one_rule_and_dropping_a_peer_removes_his(pool: Pool) -> None:
    async with connection(pool) as conn:
        shared = grants.share_rules("t", "kdoc_1", "kver_1", "alice", ["bob", "carol", "alice", "bob"])
        assert [rule.principal_id for rule in shared] == ["bob", "carol"]
        await grants.put_rules(conn, "t", shared)
        await grants.put_rules(conn, "t", grants.share_rules("t", "kdoc_1", "kver_2", "alice", ["bob"]))
        by_hand = seed.allow("dave", "memory.doc:kdoc_1")
        await grants.put_rules(conn, "t", [by_hand])
        assert len(await grants.list_rules(conn, "t")) == 3
        assert len(await grants.revoke_share_rules(conn, "t", ["kdoc_1"], keep=["bob"])) == 1
        assert [rule.principal_id for rule in await grants.list_rules(conn, "t")] == ["bob", "dave"]
        assert len(await grants.revoke_share_rules(conn, "t", ["kdoc_1"])) == 1
        assert [rule.principal_id for rule in await grants.list_rules(conn, "t")] == ["dave"]


async def test_a_rule_that_cannot_be_judged_is_logged_once_and_does_not_apply(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    store, _ = stores
    access = Access(store)
    rule = seed.allow("bob", "memory", "add")
    rule.conditions = {"moonPhase": "the value is not for the log"}
    await store.put_grant("t", rule)
    for _ in range(3):
        assert not (await access.visibility(Caller("t", "bob"))).can(Verb.ADD)
    told = [record.getMessage() for record in caplog.records if rule.id in record.getMessage()]
    assert len(told) == 1
    assert "moonPhase" in told[0] and "not for the log" not in told[0]


async def test_roles_are_assigned_listed_and_removed(pool: Pool) -> None:
    async with connection(pool) as conn:
        assert await grants.assign_role(conn, "t", "bob", "reader")
        assert not await grants.assign_role(conn, "t", "bob", "reader")
        assert await grants.list_roles(conn, "t") == [("bob", "reader")]
        assert await grants.list_roles(conn, "t", "alice") == []
        assert await grants.remove_role(conn, "t", "bob", "reader")
        assert not await grants.remove_role(conn, "t", "bob", "reader")
        with pytest.raises(Invalid):
            await grants.assign_role(conn, "t", "", "reader")


async def test_inv_28_thousands_of_rules_are_kept_and_every_change_still_acts_at_once(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = grants.PostgresGrantStore(pool), grants.PostgresGrantStore(pool)
    many = [seed.allow("bob", f"memory.doc:{n}") for n in range(grants.KEPT_FROM - 1)]
    async with connection(pool) as conn:
        await grants.put_rules(conn, "t", [*many, seed.allow("bob", "memory", "add")])

    async def may(verb: Verb = Verb.ADD) -> bool:
        return (await Access(store).visibility(Caller("t", "bob"))).can(verb)

    first = await store.collect_grants("bob", "t")
    assert await store.collect_grants("bob", "t") is first, "nothing has changed"
    [adding] = [rule for rule in first if rule.action == "add"]
    adding_denied = GrantRule(adding.id, "bob", None, "memory", "add", GrantEffect.DENY, GrantOrigin.SYSTEM)
    for change, expected in (
        (other.put_grant("t", adding_denied), False),
        (other.put_grant("t", adding), True),
        (other.revoke("t", adding.id), False),
    ):
        assert await may() is not expected
        await change
        assert await may() is expected
    async with connection(pool) as conn:
        await grants.put_rules(
            conn, "t", [GrantRule("mgrt_r", None, "adder", "memory", "add", GrantEffect.ALLOW, GrantOrigin.ROLE)]
        )
        assert not await may()
        await grants.assign_role(conn, "t", "bob", "adder")
        assert await may()
        await grants.remove_role(conn, "t", "bob", "adder")
        assert not await may()
        soon = datetime.now(UTC) + timedelta(hours=1)
        await grants.put_rules(
            conn,
            "t",
            [GrantRule("mgrt_s", "bob", None, "memory", "add", GrantEffect.ALLOW, GrantOrigin.SYSTEM, None, soon)],
        )
        assert await may()
        await conn.execute("UPDATE memory.grant_rule SET expires_at = clock_timestamp() WHERE id = 'mgrt_s'")
        assert not await may()
    assert not await store.collect_grants("nobody", "t")

    monkeypatch.setattr(grants, "KEPT_AT_MOST", 0)
    assert list(await store.collect_grants("bob", "t")) == list(await store.collect_grants("bob", "t"))
    assert not store._kept


async def test_a_host_brings_conditions_of_its_own(settings: Settings) -> None:
    registry = SHIPPED_CONDITIONS.with_evaluator("moonPhase", lambda value, context: bool(value == "full"))
    async with Engine.open(settings, condition_registry=registry) as engine:
        for verb, phase in ((Verb.ADD, "full"), (Verb.SEARCH, "new")):
            rule = seed.allow("bob", "memory", verb.value)
            rule.conditions = {"moonPhase": phase}
            await grants.PostgresGrantStore(engine.pool).put_grant("t", rule)
        visibility = await engine.access.visibility(Caller("t", "bob"))
        assert visibility.can(Verb.ADD) and not visibility.can(Verb.SEARCH)
