"""One tenant's memory on a real database, spoken to as its principals would."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from memory_plane.contracts.enums import GrantEffect, GrantOrigin
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.wire import AddFields
from memory_plane.core.caller import Caller
from memory_plane.core.grants import GrantRule
from memory_plane.core.text import clean_json
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import Access
from memory_plane.plane.capture import Capture
from memory_plane.plane.captured import Captured
from memory_plane.plane.library import Library
from memory_plane.plane.ports import GrantStore
from memory_plane.settings import Settings
from memory_plane.store.database import Connection, Pool
from memory_plane.store.grants import PostgresGrantStore


def fresh_tenant() -> str:
    return f"acme-{uuid4().hex[:12]}"


@dataclass(frozen=True)
class Memory:
    pool: Pool
    grant_store: PostgresGrantStore
    access: Access
    capture: Capture
    library: Library
    tenant: str

    @classmethod
    def on(cls, pool: Pool, settings: Settings, tenant: str | None = None) -> "Memory":
        """A tenant of that name, else one that nobody has used."""
        store = PostgresGrantStore(pool)
        access = Access(store)
        return cls(pool, store, access, Capture(pool, settings, access), Library(pool), tenant or fresh_tenant())

    async def visibility(self, principal: str) -> Visibility:
        return await self.access.visibility(Caller(self.tenant, principal))

    async def add(self, principal: str = "alice", *, key: str | None = None, **fields: Any) -> Captured:
        payload = {"title": "A title", "text": "A text.", **fields}
        return await self.capture.capture(
            await self.visibility(principal),
            AddFields.model_validate(clean_json(payload)),
            payload=payload,
            idempotency_key=key,
        )

    async def allow(self, principal: str, resource: str, action: str) -> None:
        await self.grant_store.put_grant(
            self.tenant,
            GrantRule(
                id=new_id(IdKind.GRANT_RULE),
                principal_id=principal,
                role_id=None,
                resource=resource,
                action=action,
                effect=GrantEffect.ALLOW,
                origin=GrantOrigin.SYSTEM,
            ),
        )

    def restarted(self, settings: Settings) -> "Memory":
        """The same tenant, by a process that knows nothing yet."""
        return Memory.on(self.pool, settings, self.tenant)

    def with_grants(self, store: GrantStore, settings: Settings) -> "Memory":
        """The same tenant, by a host that brings its own grant store."""
        access = Access(store)
        return replace(self, access=access, capture=Capture(self.pool, settings, access))

    async def rows(self, table: str, where: str = "true", *values: object) -> list[Mapping[str, Any]]:
        """Rows of one of our tables, of this tenant."""
        found = await self.pool.fetch(
            f"SELECT * FROM memory.{table} WHERE tenant_id = '{self.tenant}' AND {where}", *values
        )
        return [dict(row) for row in found]

    async def count(self, table: str, where: str = "true", *values: object) -> int:
        return len(await self.rows(table, where, *values))

    async def document(self, document_id: str) -> Mapping[str, Any]:
        (row,) = await self.rows("document", "id = $1", document_id)
        return row

    async def chain(self, document_id: str) -> list[Mapping[str, Any]]:
        """The versions of a document, first one first."""
        return sorted(await self.rows("version", "document_id = $1", document_id), key=lambda row: row["version"])

    async def events(self) -> list[tuple[int, str]]:
        return sorted((row["position"], row["kind"]) for row in await self.rows("feed_event"))

    async def share_rules(self, document_id: str) -> list[str]:
        """The peers that hold a rule on the document's own tag."""
        rows = await self.rows("grant_rule", "resource = $1", f"memory.doc:{document_id}")
        return sorted(row["principal_id"] for row in rows)


async def waiting_for_locks(conn: Connection, at_least: int) -> bool:
    """Whether so many sessions of this database wait for a lock just now."""
    count: int = await conn.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return count >= at_least


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
