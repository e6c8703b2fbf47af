"""One tenant's notes and what is distilled of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_plane.contracts.distilling import DistillOne, DistillOutcome
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.wire import AddFields
from memory_plane.core.caller import Caller
from memory_plane.core.visibility import Visibility
from memory_plane.plane.engine import Engine
from memory_plane.store.database import connection
from memory_plane.store.distiller_grants import allow_distiller
from memory_plane.store.grants import put_rules
from tests.access.seed import allow

AGENT = "distiller"


class Scribe:
    """A model that answers as many claims as a note has sentences, in words of its own each time."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, body: Mapping[str, Any]) -> Any:
        note = body["messages"][1]["content"].split("\n\n", 1)[1] if "\n\n" in body["messages"][1]["content"] else ""
        self.asked[note] += 1
        sentences = [part.strip() for part in note.split(".") if part.strip()]
        again = sum(self.asked.values())
        return {"claims": [{"title": f"Claim {n}", "text": f"{each} ({again})."} for n, each in enumerate(sentences)]}


@dataclass(frozen=True)
class Notes:
    engine: Engine
    tenant: str
    ids: list[str] = field(default_factory=list)

    @classmethod
    async def of(cls, engine: Engine, tenant: str, *, distiller: str = "distiller") -> "Notes":
        async with connection(engine.pool) as conn:
            await allow_distiller(conn, tenant, distiller)
            people = [allow(who, "memory", verb.value) for who in ("alice", "bob") for verb in Verb]
            shared = [allow(who, f"memory.tenant:{tenant}") for who in ("alice", "bob")]
            await put_rules(conn, tenant, [*people, *shared])
        return cls(engine, tenant)

    async def visibility(self, principal: str = "alice") -> Visibility:
        return await self.engine.access.visibility(Caller(self.tenant, principal))

    async def add(self, text: str, principal: str = "alice", **fields: Any) -> str:
        """A note that the tenant shares; its version id."""
        payload = {"title": "A note", "text": text, "share": {"tenant": True}, **fields}
        item = AddFields.model_validate(payload)
        captured = await self.engine.capture.capture(await self.visibility(principal), item, payload=payload)
        self.ids.append(captured.version_id)
        return captured.version_id

    async def forget(self, version_id: str, principal: str = "alice") -> None:
        document = await self.engine.pool.fetchval("SELECT document_id FROM memory.version WHERE id = $1", version_id)
        await self.engine.retention.forget(await self.visibility(principal), document)

    async def claims(self) -> list[Mapping[str, Any]]:
        """Every version of every claim, with its document's name and tags, in order."""
        return [
            dict(row)
            for row in await self.engine.pool.fetch(
                """
                SELECT d.external_ref, d.access_tags, v.id, v.version, v.status, v.generator_agent_id, v.provenance,
                       v.source_class, v.feed_position
                FROM memory.document d JOIN memory.version v ON v.document_id = d.id
                WHERE d.tenant_id = $1 AND d.adapter = 'claim' ORDER BY d.external_ref, v.version
                """,
                self.tenant,
            )
        ]

    async def refs(self, status: str = "active") -> list[str]:
        return [claim["external_ref"] for claim in await self.claims() if claim["status"] == status]

    async def cursor(self) -> int:
        found = await self.engine.pool.fetchval(
            "SELECT position FROM memory.consumer_cursor WHERE tenant_id = $1 AND consumer = $2",
            self.tenant,
            f"distiller:{AGENT}",
        )
        return found or 0

    async def head(self) -> int:
        found: int = await self.engine.pool.fetchval(
            "SELECT max(position) FROM memory.feed_event WHERE tenant_id = $1", self.tenant
        )
        return found


async def drain(engine: Engine, tenant: str, agent: str = AGENT) -> list[DistillOutcome]:
    """What the workflow does, without Temporal: page by page to the end."""
    outcomes = []
    while True:
        page = await engine.distilling.page(tenant, agent)
        for entry in page.entries:
            outcome = await engine.distilling.distil(DistillOne(tenant_id=tenant, agent_id=agent, entry=entry))
            outcomes.append(outcome)
            if outcome.outcome in ("moved", "unavailable"):
                break
        else:
            if page.drained:
                return outcomes
        if outcomes and outcomes[-1].outcome == "unavailable":
            return outcomes
