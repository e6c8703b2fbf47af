"""A tenant on real parts: an engine on a real database, its model endpoints faked over HTTP."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory_plane.contracts.enums import EmbedState, GrantEffect, GrantOrigin, Verb
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.wire import AddFields, SearchRequest, SearchResponse
from memory_plane.core.caller import Caller
from memory_plane.core.grants import GrantRule
from memory_plane.core.visibility import Visibility
from memory_plane.plane.captured import Captured
from memory_plane.plane.engine import Engine
from memory_plane.store.grants import PostgresGrantStore


@dataclass(frozen=True)
class World:
    engine: Engine
    tenant: str

    async def visibility(self, principal: str = "ann") -> Visibility:
        return await self.engine.access.visibility(Caller(self.tenant, principal))

    async def allow(self, principal: str, *verbs: Verb) -> None:
        for verb in verbs or tuple(Verb):
            await self.grant(principal, "memory", verb.value)

    async def grant(
        self, principal: str, resource: str, action: str = "search", effect: GrantEffect = GrantEffect.ALLOW
    ) -> None:
        await PostgresGrantStore(self.engine.pool).put_grant(
            self.tenant,
            GrantRule(
                id=new_id(IdKind.GRANT_RULE),
                principal_id=principal,
                role_id=None,
                resource=resource,
                action=action,
                effect=effect,
                origin=GrantOrigin.SYSTEM,
            ),
        )

    async def add(self, text: str, *, principal: str = "ann", title: str = "note", **fields: Any) -> Captured:
        """Captured, and embedded where the tenant has an endpoint."""
        payload = {"title": title, "text": text, **fields}
        captured = await self.engine.capture.capture(
            await self.visibility(principal), AddFields.model_validate(payload), payload=payload
        )
        if captured.embed_state is EmbedState.PENDING:
            await self.engine.embedding.embed_versions(self.tenant, [captured.version_id])
        return captured

    async def search(self, query: str = "", *, principal: str = "ann", **fields: Any) -> SearchResponse:
        request = SearchRequest.model_validate({"query": query, **fields})
        return await self.engine.search.search(await self.visibility(principal), request)

    async def found(self, query: str = "", **fields: Any) -> list[str]:
        """The document ids of the page."""
        return [item.document_id for item in (await self.search(query, **fields)).items]

    async def titles(self, query: str = "", **fields: Any) -> list[str]:
        return [item.title for item in (await self.search(query, **fields)).items]


async def add_all(world: World, texts: Sequence[str], **fields: Any) -> list[Captured]:
    return [await world.add(text, **fields) for text in texts]
