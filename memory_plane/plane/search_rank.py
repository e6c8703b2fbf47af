"""Ranking: from what the channels found to an order of documents, with everything a hit shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memory_plane.contracts.enums import Degraded
from memory_plane.contracts.recipe import Recipe, RerankRecipe
from memory_plane.contracts.wire import Passage
from memory_plane.core.boosts import BoostFacts
from memory_plane.core.diversity import diversified
from memory_plane.core.fusion import fuse, ranks
from memory_plane.core.ranking import RankedDocument, boosted, followed_by
from memory_plane.core.surroundings import StreamPlace, lifted
from memory_plane.core.visibility import Visibility
from memory_plane.models.endpoint import Endpoint
from memory_plane.models.errors import EndpointFault, RerankQueryTooLong
from memory_plane.models.pool import ModelPool
from memory_plane.plane.access import visible_versions
from memory_plane.plane.search_channels import Found
from memory_plane.plane.search_request import SearchPlan
from memory_plane.plane.search_retrieve import Retrieved
from memory_plane.plane.search_run import SearchRun
from memory_plane.settings import Settings
from memory_plane.store.database import Connection, Pool, connection
from memory_plane.store.search_rows import HitRow, active_documents, chunk_texts, chunk_vectors, hits

RERANKED = 50
RERANK_SHARE = 0.6
LEAST_POOL = 20


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    chunk_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of the page. `sources` are those versions of its lineage that the caller may see."""

    row: HitRow
    ranked: RankedDocument
    channels: tuple[str, ...]
    supports: int
    contradicts: int
    sources: tuple[str, ...]
    lexical_relevance: float
    rerank_score: float | None
    passages: tuple[Passage, ...] = ()
    explain: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Relations:
    supports: Mapping[str, int]
    contradicts: Mapping[str, int]
    visible: frozenset[str]


class Ranker:
    def __init__(self, pool: Pool, settings: Settings, models: ModelPool) -> None:
        self._pool = pool
        self._settings = settings
        self._models = models

    async def rank(
        self, plan: SearchPlan, visibility: Visibility, found: Retrieved, run: SearchRun, now: datetime
    ) -> list[Hit]:
        """The page, best first."""
        recipe = found.scene.recipe
        best = best_chunks(recipe, found.lexical, found.dense)
        if not best:
            return []
        with run.timed("load"):
            async with connection(self._pool) as conn:
                rows = await hits(conn, visibility.caller.tenant_id, [chunks[0].chunk_id for chunks in best.values()])
                relations = await _relations(conn, visibility, rows)
        by_document = {row.document_id: row for row in rows}
        fused = {document: best[document][0].score for document in by_document}
        active = _surrounded(fused, rows, recipe, plan)
        order = sorted(active, key=lambda document: (-active[document], *_newest(by_document[document])))
        with run.timed("rerank"):
            judged = await self._reranked(recipe, plan, order, by_document, run)
        facts = {document: _facts(row, relations) for document, row in by_document.items()}
        ranked = _boosted(order, active, judged, facts, recipe, now)
        if recipe.mmr_lambda < 1.0 and found.target is not None:
            with run.timed("diversity"):
                ranked = await self._diverse(ranked, plan, visibility, found, by_document)
        page = ranked[: plan.limit]
        passages = await self._passages(plan, visibility, {item.document_id: best[item.document_id] for item in page})
        return [
            Hit(
                row=(row := by_document[item.document_id]),
                ranked=item,
                channels=_channels(found, item.document_id),
                supports=relations.supports[row.version_id],
                contradicts=relations.contradicts[row.version_id],
                sources=tuple(source for source in row.sources if source in relations.visible),
                lexical_relevance=_lexical_relevance(found, item.document_id),
                rerank_score=judged.get(item.document_id) if judged else None,
                passages=passages.get(item.document_id, ()),
                explain=_explained(item, fused, active, found, judged) if plan.explain else {},
            )
            for item in page
        ]

    async def _passages(
        self, plan: SearchPlan, visibility: Visibility, best: Mapping[str, Sequence[ScoredChunk]]
    ) -> dict[str, tuple[Passage, ...]]:
        """The texts of each document's best chunks, where they were asked for."""
        if plan.passages == 0:
            return {}
        wanted = {document: chunks[: plan.passages] for document, chunks in best.items()}
        async with connection(self._pool) as conn:
            texts = await chunk_texts(
                conn, visibility.caller.tenant_id, [chunk.chunk_id for chunks in wanted.values() for chunk in chunks]
            )
        return {
            document: tuple(_passage(texts[chunk.chunk_id], chunk.score) for chunk in chunks if chunk.chunk_id in texts)
            for document, chunks in wanted.items()
        }

    async def recent(self, plan: SearchPlan, visibility: Visibility, found: Retrieved, now: datetime) -> list[Hit]:
        """A page without a query: the documents last seen, in that order."""
        listed = found.lexical.candidates if found.lexical is not None else ()
        async with connection(self._pool) as conn:
            rows = await hits(conn, visibility.caller.tenant_id, [candidate.chunk_id for candidate in listed])
            relations = await _relations(conn, visibility, rows)
        by_document = {row.document_id: row for row in rows}
        page = [by_document[each] for each in dict.fromkeys(c.document_id for c in listed) if each in by_document]
        facts = {row.document_id: _facts(row, relations) for row in page}
        same = {row.document_id: 1.0 for row in page}
        scored = {item.document_id: item for item in boosted(same, facts, found.scene.recipe, now)}
        return [
            Hit(
                row=row,
                ranked=scored[row.document_id],
                channels=(),
                supports=relations.supports[row.version_id],
                contradicts=relations.contradicts[row.version_id],
                sources=tuple(source for source in row.sources if source in relations.visible),
                lexical_relevance=0.0,
                rerank_score=None,
            )
            for row in page[: plan.limit]
        ]

    async def _reranked(
        self, recipe: Recipe, plan: SearchPlan, order: Sequence[str], rows: Mapping[str, HitRow], run: SearchRun
    ) -> dict[str, float] | None:
        """The reranker's scores of the first RERANKED; None without a reranker, or where it cannot be had."""
        if recipe.rerank is None:
            return None
        head = list(order[:RERANKED])
        texts = [f"{rows[document].title}\n{rows[document].text}" for document in head]
        within = min(run.share(RERANK_SHARE), self._settings.rerank_timeout_ms / 1000)
        try:
            reranker = self._models.reranker(self._endpoint(recipe.rerank), recipe.rerank.max_doc_chars)
            scores = await reranker.rerank(plan.query, texts, within)
        except RerankQueryTooLong:
            run.degrade(Degraded.RERANK_QUERY_TOO_LONG)
            return None
        except EndpointFault:
            run.degrade(Degraded.RERANK_UNAVAILABLE)
            return None
        return dict(zip(head, scores, strict=True))

    def _endpoint(self, recipe: RerankRecipe) -> Endpoint:
        return Endpoint(
            recipe.base_url,
            recipe.model,
            recipe.style.value,
            self._settings.secret(recipe.api_key_env),
            self._settings.rerank_timeout_ms / 1000,
        )

    async def _diverse(
        self,
        ranked: Sequence[RankedDocument],
        plan: SearchPlan,
        visibility: Visibility,
        found: Retrieved,
        rows: Mapping[str, HitRow],
    ) -> list[RankedDocument]:
        assert found.target is not None  # noqa: S101 - the caller looked
        size = max(LEAST_POOL, plan.limit)
        pool, rest = ranked[:size], ranked[size:]
        chunk_of = {item.document_id: rows[item.document_id].chunk_id for item in pool}
        async with connection(self._pool) as conn:
            vectors = await chunk_vectors(
                conn, visibility.caller.tenant_id, found.target.table, list(chunk_of.values())
            )
        known = {item.document_id: item for item in pool}
        order = diversified(
            list(known),
            {document: item.score for document, item in known.items()},
            {document: vectors[chunk] for document, chunk in chunk_of.items() if chunk in vectors},
            found.scene.recipe.mmr_lambda,
        )
        return [*(known[document] for document in order), *rest]


def best_chunks(recipe: Recipe, lexical: Found | None, dense: Found | None) -> dict[str, list[ScoredChunk]]:
    """By document its chunks, the best first: a document is as relevant as the best of them."""
    fused = fuse(
        recipe.fusion,
        None if lexical is None else lexical.scores,
        None if dense is None else dense.scores,
    )
    document_of = {
        candidate.chunk_id: candidate.document_id
        for found in (lexical, dense)
        if found is not None
        for candidate in found.candidates
    }
    best: dict[str, list[ScoredChunk]] = {}
    for chunk_id, score in sorted(fused.items(), key=lambda item: (-item[1], item[0])):
        best.setdefault(document_of[chunk_id], []).append(ScoredChunk(chunk_id, score))
    return best


def _passage(chunk: tuple[str, int, int], score: float) -> Passage:
    text, start, end = chunk
    return Passage(text=text, start=start, end=end, score=score)


def _channels(found: Retrieved, document: str) -> tuple[str, ...]:
    channels = (("lexical", found.lexical), ("dense", found.dense))
    return tuple(name for name, channel in channels if channel is not None and document in channel.documents)


def _surrounded(
    fused: Mapping[str, float], rows: Sequence[HitRow], recipe: Recipe, plan: SearchPlan
) -> dict[str, float]:
    # What was known at a past moment must not depend on what came between since.
    if plan.as_of is not None:
        return dict(fused)
    places = [StreamPlace(row.document_id, row.stream, row.gap) for row in rows if row.gap is not None]
    return lifted(fused, places, recipe.fusion.surroundings_weight)


def _newest(row: HitRow) -> tuple[float, str]:
    return -row.occurred_at.timestamp(), row.document_id


def _facts(row: HitRow, relations: _Relations) -> BoostFacts:
    return BoostFacts(
        authority=row.authority,
        temporal_class=row.temporal_class,
        occurred_at=row.occurred_at,
        valid_until=row.valid_until,
        supports=relations.supports[row.version_id],
        contradicts=relations.contradicts[row.version_id],
    )


def _boosted(
    order: Sequence[str],
    active: Mapping[str, float],
    judged: Mapping[str, float] | None,
    facts: Mapping[str, BoostFacts],
    recipe: Recipe,
    now: datetime,
) -> list[RankedDocument]:
    if judged is None:
        return boosted(active, facts, recipe, now)
    rest = {document: active[document] for document in order if document not in judged}
    return followed_by(boosted(judged, facts, recipe, now), boosted(rest, facts, recipe, now))


async def _relations(conn: Connection, visibility: Visibility, rows: Sequence[HitRow]) -> _Relations:
    """Corroboration counted, and lineage shown, only over what the caller may see; a document counts once."""
    witnesses = {each for row in rows for each in (*row.supporters, *row.contradictors)}
    wanted = witnesses | {source for row in rows for source in row.sources}
    visible = frozenset(await visible_versions(conn, visibility, wanted)) if wanted else frozenset[str]()
    speaking: dict[str, str] = {}
    if witnesses & visible:
        speaking = await active_documents(conn, visibility.caller.tenant_id, witnesses & visible)

    def counted(versions: Sequence[str]) -> int:
        return len({speaking[version] for version in versions if version in speaking})

    return _Relations(
        supports={row.version_id: counted(row.supporters) for row in rows},
        contradicts={row.version_id: counted(row.contradictors) for row in rows},
        visible=visible,
    )


def _lexical_relevance(found: Retrieved, document: str) -> float:
    """How much of what the query asks the document says, 1 for each term once; see core.evidence."""
    if found.lexical is None or document not in found.lexical.documents:
        return 0.0
    if found.scene.recipe.fusion.lexical == "and":
        return 1.0
    total = found.scene.plan.total_weight
    return min(1.0, found.lexical.documents[document] / total) if total > 0.0 else 0.0


def _explained(
    item: RankedDocument,
    fused: Mapping[str, float],
    active: Mapping[str, float],
    found: Retrieved,
    judged: Mapping[str, float] | None,
) -> dict[str, object]:
    document = item.document_id
    explained: dict[str, object] = {
        "fused": fused[document],
        "withSurroundings": active[document],
        "relevance": item.relevance,
        "boosts": {
            "authority": item.boosts.authority,
            "temporal": item.boosts.temporal,
            "corroboration": item.boosts.corroboration,
            "product": item.boosts.product,
        },
    }
    for name, channel in (("lexical", found.lexical), ("dense", found.dense)):
        if channel is not None and document in channel.documents:
            explained[name] = {"rank": ranks(channel.documents)[document], "score": channel.documents[document]}
    if judged and document in judged:
        explained["rerank"] = judged[document]
    return explained
