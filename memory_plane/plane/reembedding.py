"""Filling the vectors that a tenant's live generation lacks: after a long outage, or once an endpoint is configured."""

from memory_plane.contracts.enums import EmbedState
from memory_plane.contracts.errors import Conflict, NotFound
from memory_plane.contracts.workflows import ReembedPage, ReembedPageResult, ReembedPlan
from memory_plane.plane.embed_pass import OnProgress
from memory_plane.plane.embedding import Embedding
from memory_plane.settings import Settings
from memory_plane.store import derivations
from memory_plane.store.database import Connection, Pool, connection, in_transaction
from memory_plane.store.locks import own_cutover

PAGE_VERSIONS = 200
MISSING = (EmbedState.NOT_CONFIGURED, EmbedState.FAILED, EmbedState.PENDING)


class Reembedding:
    def __init__(self, pool: Pool, settings: Settings, embedding: Embedding) -> None:
        self._pool = pool
        self._settings = settings
        self._embedding = embedding

    async def prepare(self, tenant_id: str) -> ReembedPlan:
        """The generation to fill. One without an endpoint gets the configured one here, in place: from then on adds
        are embedded, and a chunk longer than the model's input limit is embedded in windows.

        Raises NotFound for a tenant without documents and Conflict where no endpoint is configured.
        """
        configured = self._settings.default_recipe().embed

        async def work(conn: Connection) -> ReembedPlan:
            # Captures read the recipe under the shared side of this lock, so each is before the change or after it.
            await own_cutover(conn, tenant_id)
            generation = await derivations.generation(conn, tenant_id)
            if generation is None:
                raise NotFound(f"The tenant {tenant_id!r} has no live generation: nothing was ever captured for it.")
            if generation.recipe.embed is None:
                if configured is None:
                    raise Conflict(
                        "Neither the live recipe nor the configuration has an embed endpoint: set EMBED_BASE_URL and "
                        "EMBED_MODEL, restart the worker, and re-embed again.",
                        code="embed_not_configured",
                    )
                await derivations.give_endpoint(conn, tenant_id, generation.id, configured)
            total = await derivations.missing_total(conn, tenant_id, generation.id, MISSING)
            return ReembedPlan(generation_id=generation.id, total=total)

        return await in_transaction(self._pool, work)

    async def page(self, page: ReembedPage, on_progress: OnProgress) -> ReembedPageResult:
        """Embed the next versions that lack vectors. Idempotent: what has its vectors is not on a page.

        Raises EndpointFault.
        """
        async with connection(self._pool) as conn:
            versions = await derivations.page(
                conn, page.tenant_id, page.generation_id, MISSING, after=page.after, limit=PAGE_VERSIONS
            )
            await derivations.redrive(
                conn, page.tenant_id, page.generation_id, versions, (EmbedState.NOT_CONFIGURED, EmbedState.FAILED)
            )
        if not versions:
            return ReembedPageResult(after=page.after, done=True)
        result = await self._embedding.embed_versions(
            page.tenant_id, versions, generation_id=page.generation_id, on_progress=on_progress
        )
        return ReembedPageResult(
            after=versions[-1],
            done=len(versions) < PAGE_VERSIONS,
            embedded=result.embedded,
            failed=result.failed,
            pending=result.pending,
        )
