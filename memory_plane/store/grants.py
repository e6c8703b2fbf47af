"""The default grant store: rules and roles in Postgres. What others change is in force on the next request."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import asyncpg

from memory_plane.contracts.enums import GrantEffect, GrantOrigin
from memory_plane.contracts.errors import Invalid
from memory_plane.core.conditions import MEMORY_SHARE
from memory_plane.core.grants import GrantRule, IndexedRules, share_rule_id
from memory_plane.core.text import is_storable
from memory_plane.store.database import Connection, Pool, connection

_COLUMNS = "id, principal_id, role_id, resource, action, effect, origin, conditions, expires_at"
_EFFECTS = {effect.value: effect for effect in GrantEffect}
_ORIGINS = {origin.value: origin for origin in GrantOrigin}

KEPT_FROM = 200
"""Rules of one principal from which on they are kept between requests: reading thousands costs more than asking
whether they are still the same, which is asked at every request."""
KEPT_AT_MOST = 50_000
"""Rules kept in all, some hundred bytes each."""

_HELD = f"""
    SELECT {_COLUMNS}, hashtextextended(id || ' ' || xmin::text, 0)::numeric AS stamp FROM memory.grant_rule
    WHERE tenant_id = $1 AND principal_id = $2 AND (expires_at IS NULL OR expires_at > clock_timestamp())
    UNION ALL
    SELECT {_COLUMNS}, hashtextextended(id || ' ' || xmin::text, 0)::numeric FROM memory.grant_rule
    WHERE tenant_id = $1 AND (expires_at IS NULL OR expires_at > clock_timestamp()) AND role_id IN (
        SELECT role_id FROM memory.principal_role WHERE tenant_id = $1 AND principal_id = $2
    )
"""  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True)
class _Kept:
    """`stamp` is made of the id of each rule and of the transaction that wrote it: equal stamps are equal rules."""

    stamp: str
    rules: IndexedRules


class PostgresGrantStore:
    """Writable. The capture's transaction writes share rules with the functions below, on its own connection."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    def is_on(self, pool: Pool) -> bool:
        return pool is self._pool

    async def collect_grants(self, principal_id: str, tenant_id: str) -> Sequence[GrantRule]:
        key = (tenant_id, principal_id)
        kept = self._kept.get(key)
        async with connection(self._pool) as conn:
            if kept is not None and kept.stamp == await self._stamp(conn, *key):
                self._keep(key, kept)
                return kept.rules
            rows = await conn.fetch(
                f"SELECT {_COLUMNS}, sum(stamp) OVER ()::text AS stamp FROM ({_HELD}) AS held",  # noqa: S608
                *key,
            )
        rules = IndexedRules(map(_rule, rows))
        self._kept.pop(key, None)
        if len(rules) >= KEPT_FROM:
            self._keep(key, _Kept(rows[0]["stamp"], rules))
        return rules

    async def _stamp(self, conn: Connection, tenant_id: str, principal_id: str) -> str | None:
        stamp: str | None = await conn.fetchval(
            f"SELECT sum(stamp)::text FROM ({_HELD}) AS held",  # noqa: S608 - a constant
            tenant_id,
            principal_id,
        )
        return stamp

    def _keep(self, key: tuple[str, str], kept: _Kept) -> None:
        self._kept[key] = kept
        self._kept.move_to_end(key)
        while sum(len(each.rules) for each in self._kept.values()) > KEPT_AT_MOST:
            self._kept.popitem(last=False)

    async def put_grant(self, tenant_id: str, rule: GrantRule) -> None:
        """Write the rule, or replace the tenant's rule of that id."""
        async with connection(self._pool) as conn:
            await put_rules(conn, tenant_id, [rule])

    async def revoke(self, tenant_id: str, rule_id: str) -> bool:
        async with connection(self._pool) as conn:
            return await revoke_rule(conn, tenant_id, rule_id)


def _rule(row: asyncpg.Record) -> GrantRule:
    return GrantRule(
        id=row["id"],
        principal_id=row["principal_id"],
        role_id=row["role_id"],
        resource=row["resource"],
        action=row["action"],
        effect=_EFFECTS[row["effect"]],
        origin=_ORIGINS[row["origin"]],
        conditions=row["conditions"],
        expires_at=row["expires_at"],
    )


def require_wellformed(rule: GrantRule) -> None:
    """Raises Invalid for a rule that names nobody, or both a principal and a role, or nothing to allow."""
    holders = [holder for holder in (rule.principal_id, rule.role_id) if holder is not None]
    if len(holders) != 1 or not holders[0].strip():
        raise Invalid("A grant rule is held by either one principal or one role; give exactly one of them.")
    if not rule.resource.strip() or not rule.action.strip():
        raise Invalid("A grant rule needs a resource and an action, such as memory and search.")
    if not all(is_storable(text) for text in (holders[0], rule.resource, rule.action)):
        raise Invalid("A grant rule must not contain NUL or half of a surrogate pair; remove those characters.")
    if rule.expires_at is not None and rule.expires_at.tzinfo is None:
        raise Invalid("The expiry of a grant rule needs an offset, such as 2030-01-31T12:00:00+00:00.")


async def put_rules(conn: Connection, tenant_id: str, rules: Sequence[GrantRule]) -> None:
    """Write rules in id order (so that two writers never wait for each other), replacing those of the same id."""
    for rule in rules:
        require_wellformed(rule)
    await conn.executemany(
        """
        INSERT INTO memory.grant_rule
            (tenant_id, id, principal_id, role_id, resource, action, effect, origin, conditions, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT (tenant_id, id) DO UPDATE SET
            principal_id = excluded.principal_id, role_id = excluded.role_id, resource = excluded.resource,
            action = excluded.action, effect = excluded.effect, origin = excluded.origin,
            conditions = excluded.conditions, expires_at = excluded.expires_at
        """,
        [
            (
                tenant_id,
                rule.id,
                rule.principal_id,
                rule.role_id,
                rule.resource,
                rule.action,
                rule.effect.value,
                rule.origin.value,
                None if rule.conditions is None else dict(rule.conditions),
                rule.expires_at,
            )
            for rule in sorted(rules, key=lambda rule: rule.id)
        ],
    )


async def revoke_rule(conn: Connection, tenant_id: str, rule_id: str) -> bool:
    status = await conn.execute("DELETE FROM memory.grant_rule WHERE tenant_id = $1 AND id = $2", tenant_id, rule_id)
    return status == "DELETE 1"


async def list_rules(
    conn: Connection, tenant_id: str, *, principal_id: str | None = None, role_id: str | None = None
) -> list[GrantRule]:
    """The tenant's rules, oldest first; of one principal (not counting its roles) or one role where given."""
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM memory.grant_rule
        WHERE tenant_id = $1 AND ($2::text IS NULL OR principal_id = $2) AND ($3::text IS NULL OR role_id = $3)
        ORDER BY created_at, id
        """,  # noqa: S608 - a constant
        tenant_id,
        principal_id,
        role_id,
    )
    return [_rule(row) for row in rows]


def share_rules(
    tenant_id: str, document_id: str, version_id: str, shared_by: str, principals: Collection[str]
) -> list[GrantRule]:
    """One rule for each peer on the document's own tag; none for the one who shares."""
    audit = {"sharedBy": shared_by, "documentId": document_id, "sourceVersionId": version_id, "tenantId": tenant_id}
    return [
        GrantRule(
            id=share_rule_id(tenant_id, document_id, principal),
            principal_id=principal,
            role_id=None,
            resource=f"memory.doc:{document_id}",
            action="search",
            effect=GrantEffect.ALLOW,
            origin=GrantOrigin.SYSTEM,
            conditions={MEMORY_SHARE: audit},
        )
        for principal in sorted(set(principals) - {shared_by})
    ]


async def revoke_share_rules(
    conn: Connection, tenant_id: str, document_ids: Collection[str], *, keep: Collection[str] = ()
) -> list[str]:
    """Remove the rules that sharing has written for these documents, save those of the peers in `keep`; the ids of the
    rules removed. Rules that an operator wrote on the same tag stay."""
    rows = await conn.fetch(
        """
        DELETE FROM memory.grant_rule
        WHERE tenant_id = $1 AND resource = ANY ($2::text[]) AND conditions ? $3
          AND NOT (principal_id = ANY ($4::text[]))
        RETURNING id
        """,
        tenant_id,
        [f"memory.doc:{document_id}" for document_id in document_ids],
        MEMORY_SHARE,
        list(keep),
    )
    return [row["id"] for row in rows]


async def assign_role(conn: Connection, tenant_id: str, principal_id: str, role_id: str) -> bool:
    """False when the principal had the role already."""
    if not principal_id.strip() or not role_id.strip():
        raise Invalid("A role is assigned to a principal; give both names.")
    status = await conn.execute(
        """
        INSERT INTO memory.principal_role (tenant_id, principal_id, role_id) VALUES ($1, $2, $3)
        ON CONFLICT (tenant_id, principal_id, role_id) DO NOTHING
        """,
        tenant_id,
        principal_id,
        role_id,
    )
    return status == "INSERT 0 1"


async def remove_role(conn: Connection, tenant_id: str, principal_id: str, role_id: str) -> bool:
    """False when the principal did not have the role."""
    status = await conn.execute(
        "DELETE FROM memory.principal_role WHERE tenant_id = $1 AND principal_id = $2 AND role_id = $3",
        tenant_id,
        principal_id,
        role_id,
    )
    return status == "DELETE 1"


async def list_roles(conn: Connection, tenant_id: str, principal_id: str | None = None) -> list[tuple[str, str]]:
    """Pairs of principal and role, in order."""
    rows = await conn.fetch(
        """
        SELECT principal_id, role_id FROM memory.principal_role
        WHERE tenant_id = $1 AND ($2::text IS NULL OR principal_id = $2)
        ORDER BY principal_id, role_id
        """,
        tenant_id,
        principal_id,
    )
    return [(row["principal_id"], row["role_id"]) for row in rows]


class InMemoryGrantStore:
    """Writable, for tests and for hosts that mount the library in one process. Rules are per tenant."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str, str], GrantRule] = {}
        self._roles: set[tuple[str, str, str]] = set()

    async def collect_grants(self, principal_id: str, tenant_id: str) -> Sequence[GrantRule]:
        roles = {role for tenant, principal, role in self._roles if (tenant, principal) == (tenant_id, principal_id)}
        now = datetime.now(UTC)
        return [
            rule
            for (tenant, _), rule in self._rules.items()
            if tenant == tenant_id
            and (rule.principal_id == principal_id or rule.role_id in roles)
            and (rule.expires_at is None or rule.expires_at > now)
        ]

    async def put_grant(self, tenant_id: str, rule: GrantRule) -> None:
        require_wellformed(rule)
        self._rules[(tenant_id, rule.id)] = rule

    async def revoke(self, tenant_id: str, rule_id: str) -> bool:
        return self._rules.pop((tenant_id, rule_id), None) is not None

    def assign_role(self, tenant_id: str, principal_id: str, role_id: str) -> None:
        self._roles.add((tenant_id, principal_id, role_id))
