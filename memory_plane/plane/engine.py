"""The engine: one pool, one set of model clients, and the services over them. Doors and activities hold one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Self

import httpx

from memory_plane.core.conditions import SHIPPED_CONDITIONS, ConditionRegistry
from memory_plane.models.pool import ModelPool
from memory_plane.plane.access import Access
from memory_plane.plane.adding import Adding
from memory_plane.plane.capture import Capture
from memory_plane.plane.cutover import Cutover
from memory_plane.plane.deriving import Deriving
from memory_plane.plane.distilling import Distilling
from memory_plane.plane.embedding import Embedding
from memory_plane.plane.engine_store import EngineStore
from memory_plane.plane.feed import Feed
from memory_plane.plane.hosting import Hosting
from memory_plane.plane.ingesting import Ingesting
from memory_plane.plane.library import Library
from memory_plane.plane.ports import GrantStore, HealthChecked, SourceProvider, WorkflowStarter
from memory_plane.plane.reconciling import Reconciling
from memory_plane.plane.reembedding import Reembedding
from memory_plane.plane.retention import Retention
from memory_plane.plane.retiring import Retiring
from memory_plane.plane.review import Reviewing
from memory_plane.plane.search import Search
from memory_plane.plane.transforms import Transforms
from memory_plane.plane.widening import Widening
from memory_plane.settings import Settings
from memory_plane.store.database import Pool, open_pool
from memory_plane.store.grants import PostgresGrantStore

CLOSE_SECONDS = 5.0


@dataclass(frozen=True)
class Engine:
    """Open one with `Engine.open`. `starter` None: nothing is handed to workflows (a library without Temporal)."""

    settings: Settings
    pool: Pool
    models: ModelPool
    starter: WorkflowStarter | None
    access: Access
    capture: Capture
    adding: Adding
    embedding: Embedding
    library: Library
    feed: Feed
    retention: Retention
    widening: Widening
    search: Search
    ingesting: Ingesting
    reconciling: Reconciling
    reembedding: Reembedding
    distilling: Distilling
    hosting: Hosting
    documents: EngineStore
    transforms: Transforms
    deriving: Deriving
    reviewing: Reviewing
    cutover: Cutover
    retiring: Retiring

    @property
    def temporal_health(self) -> Callable[[], Awaitable[None]] | None:
        return self.starter.check_health if isinstance(self.starter, HealthChecked) else None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings,
        *,
        starter: WorkflowStarter | None = None,
        grant_store: GrantStore | None = None,
        condition_registry: ConditionRegistry = SHIPPED_CONDITIONS,
        sources: Sequence[SourceProvider] = (),
        http: httpx.AsyncClient | None = None,
    ) -> AsyncIterator[Self]:
        """Everything open, closed again at the end. A database that is down fails calls, not the opening.

        `grant_store` None: the grants of this database. `http` is used for
        model endpoints and left open. `sources` are live sources that a search asks too.
        """
        async with AsyncExitStack() as stack:
            pool = await open_pool(settings)
            stack.push_async_callback(_close, pool)
            models = await stack.enter_async_context(ModelPool(http, embed_batch_size=settings.embed_batch_size))
            access = Access(grant_store if grant_store is not None else PostgresGrantStore(pool), condition_registry)
            capture = Capture(pool, settings, access, processors=settings.memory_processors)
            embedding = Embedding(pool, settings, models)
            search = Search(pool, settings, access, embedding, models, sources=sources)
            stack.push_async_callback(search.aclose)
            retiring = Retiring(pool, settings)
            feed, library, retention = (
                Feed(pool),
                Library(pool, settings.search_deadline_ms / 1000),
                Retention(pool, access),
            )
            adding = Adding(capture, embedding, starter, settings)
            yield cls(
                settings=settings,
                pool=pool,
                models=models,
                starter=starter,
                access=access,
                capture=capture,
                adding=adding,
                embedding=embedding,
                library=library,
                feed=feed,
                retention=retention,
                documents=EngineStore(adding, search, library, feed, retention),
                widening=Widening(pool, access, starter),
                search=search,
                ingesting=Ingesting(pool, settings, access, capture),
                reconciling=Reconciling(pool, starter, retire=[retiring.delete_retired]),
                reembedding=Reembedding(pool, settings, embedding),
                hosting=Hosting(access, adding, search, library, feed),
                distilling=Distilling(pool, settings, access, capture, feed, models, starter),
                transforms=Transforms(pool, settings, embedding),
                deriving=Deriving(pool, embedding),
                reviewing=Reviewing(pool, search),
                cutover=Cutover(pool, embedding),
                retiring=retiring,
            )


async def _close(pool: Pool) -> None:
    """Let what is under way finish for a moment, then end every connection."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await pool.close()
    except TimeoutError:
        pool.terminate()
