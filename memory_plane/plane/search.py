"""Search: lexical, dense and live sources, each filtered by the authority, fused, ranked, and shown with its source.

A stage that cannot run is skipped and named in `degraded`. No connection is held while an endpoint is waited for.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from memory_plane.contracts.enums import Degraded, Verb
from memory_plane.contracts.wire import Passage, SearchRequest, SearchResponse
from memory_plane.core.caller import Caller
from memory_plane.core.lexical_query import ParsedQuery
from memory_plane.core.live_sources import LOCAL, LiveHit
from memory_plane.core.surroundings import supported
from memory_plane.core.visibility import Visibility
from memory_plane.models.pool import ModelPool
from memory_plane.plane.access import Access
from memory_plane.plane.embedding import Embedding
from memory_plane.plane.ports import SourceProvider
from memory_plane.plane.search_answer import judged_evidence, local_item, merged_items
from memory_plane.plane.search_rank import Hit, Ranker, ScoredChunk
from memory_plane.plane.search_request import MAX_LIMIT_WIRE, SearchPlan, checked
from memory_plane.plane.search_retrieve import Retrieved, Retriever
from memory_plane.plane.search_run import SearchRun
from memory_plane.plane.statistics_upkeep import StatisticsUpkeep
from memory_plane.settings import Settings
from memory_plane.store.database import Pool, connection
from memory_plane.store.search_rows import chunk_texts
from memory_plane.telemetry import metrics

LIVE_SECONDS = 0.8
_log = logging.getLogger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Search:
    """`sources` are the host's live sources; `clock` is for tests of what depends on time."""

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        access: Access,
        embedding: Embedding,
        models: ModelPool,
        *,
        sources: Sequence[SourceProvider] = (),
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._access = access
        self._pool = pool
        self._settings = settings
        self._clock = clock
        self._sources = {source.id: source for source in sources}
        if LOCAL in self._sources:
            raise ValueError(f"{LOCAL!r} names the memory itself; give the live source another id.")
        self.upkeep = StatisticsUpkeep(pool)
        self._retriever = Retriever(pool, embedding, self.upkeep, settings.fts_language)
        self._ranker = Ranker(pool, settings, models)

    async def aclose(self) -> None:
        await self.upkeep.aclose()

    async def search(
        self, visibility: Visibility, request: SearchRequest, *, max_limit: int = MAX_LIMIT_WIRE
    ) -> SearchResponse:
        """One page, best first. Raises Invalid, Forbidden, NotFound (a generation), Unavailable (the database)."""
        self._access.require(visibility, Verb.SEARCH)
        plan = checked(request, visibility, self._sources, max_limit)
        run = SearchRun(self._settings.search_deadline_ms / 1000)
        live = [asyncio.create_task(self._live(source, visibility.caller, plan, run)) for source in plan.live]
        try:
            found, hits = await self._local(plan, visibility, run) if plan.local else (None, [])
            remote = dict([each for task in live if (each := await task) is not None])
        finally:
            for task in live:
                task.cancel()
        query = found.scene.query if found is not None else ParsedQuery("")
        passages = await self._passages(plan, visibility, hits)
        items = [local_item(hit, query, passages.get(hit.row.document_id)) for hit in hits]
        if any(remote.values()):
            items = merged_items(items, remote, plan.limit, self._clock())
        metrics.searched(run.timings, run.degraded or (), _channels(hits), of_words=not plan.blank)
        return SearchResponse(
            items=items,
            evidence=judged_evidence(items, hits) if plan.include_evidence else None,
            degraded=run.degraded,
            explain=_explained(found, run) if plan.explain else None,
        )

    async def _local(
        self, plan: SearchPlan, visibility: Visibility, run: SearchRun
    ) -> tuple[Retrieved | None, list[Hit]]:
        found = await self._retriever.retrieve(plan, visibility, run)
        if found is None:
            return None, []
        if plan.blank:
            ranking = await self._ranker.recent(plan, visibility, found, self._clock())
        else:
            ranking = await self._ranker.rank(plan, visibility, found, run, self._clock())
        return found, await self._ranker.page(plan, visibility, found, ranking, run)

    async def _passages(
        self, plan: SearchPlan, visibility: Visibility, hits: Sequence[Hit]
    ) -> dict[str, list[Passage]]:
        """By document the texts of its best chunks, where they were asked for."""
        if plan.passages == 0 or not hits:
            return {}
        wanted = {hit.row.document_id: hit.chunks[: plan.passages] for hit in hits}
        async with connection(self._pool) as conn:
            ids = [chunk.candidate.chunk_id for chunks in wanted.values() for chunk in chunks]
            texts = await chunk_texts(conn, visibility.caller.tenant_id, ids)
        return {document: _read(chunks, texts) for document, chunks in wanted.items()}

    async def _live(
        self, source: str, caller: Caller, plan: SearchPlan, run: SearchRun
    ) -> tuple[str, Sequence[LiveHit]] | None:
        try:
            async with asyncio.timeout(LIVE_SECONDS):
                return source, await self._sources[source].search_live(caller, plan.query, plan.limit)
        except TimeoutError:
            run.degrade(Degraded.LIVE_TIMEOUT)
        except Exception as failure:  # noqa: BLE001 - the boundary to a host's code: whatever it raises, it is left out
            _log.warning("the live source %s failed (%s)", source, type(failure).__name__)
            run.degrade(Degraded.LIVE_ERROR)
        return None


def _read(chunks: Sequence[ScoredChunk], texts: Mapping[str, tuple[str, int, int]]) -> list[Passage]:
    """One document's passages, best first; a chunk that is gone meanwhile is left out."""
    found = [(*texts[chunk.candidate.chunk_id], chunk.score) for chunk in chunks if chunk.candidate.chunk_id in texts]
    scores = supported([(start, end, score) for _, start, end, score in found])
    read = [
        Passage(text=text, start=start, end=end, score=score)
        for (text, start, end, _), score in zip(found, scores, strict=True)
    ]
    return sorted(read, key=lambda passage: -passage.score)


def _channels(hits: Sequence[Hit]) -> set[str]:
    channels = {channel for hit in hits for channel in hit.channels}
    return channels | {"rerank"} if any(hit.rerank_score is not None for hit in hits) else channels


def _explained(found: Retrieved | None, run: SearchRun) -> dict[str, object]:
    explained: dict[str, object] = {"milliseconds": {stage: took * 1000 for stage, took in run.timings.items()}}
    if found is not None:
        scene = found.scene
        explained |= {
            "generation": scene.generation_id,
            "chunks": scene.size.chunk_count,
            "vectorScan": None if found.scan is None else found.scan.value,
            "smallSet": None if scene.documents is None else len(scene.documents),
            "terms": {
                "scored": len(scene.plan.scored),
                "driving": len(scene.plan.driving),
                "pairs": len(scene.plan.pairs),
            },
            "candidates": {
                name: None if channel is None else len(channel.documents)
                for name, channel in (("lexical", found.lexical), ("dense", found.dense))
            },
        }
    return explained
