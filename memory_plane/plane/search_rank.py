"""Ranking: from what the channels found to an order of documents, and the rows of the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from memory_plane.contracts.enums import Degraded, TemporalClass
from memory_plane.contracts.recipe import Recipe, RerankRecipe
from memory_plane.core.boosts import BoostFacts
from memory_plane.core.diversity import diversified
from memory_plane.core.fusion import fuse, ranks
from memory_plane.core.ranking import RankedDocument, boosted, followed_by
from memory_plane.core.surroundings import held, lifted
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
from memory_plane.store.candidates import Candidate
from memory_plane.store.database import Connection, Pool, connection
from memory_plane.store.search_rows import Around, PageRow, active_documents, around, chunk_vectors, page_rows

CONSIDERED = 80
"""Documents that are ranked, the best by fused score; twice the limit where that is more. See docs/decisions
(retrieval) for what more of them bring."""
RERANKED = 50
RERANK_SHARE = 0.6
LEAST_POOL = 20


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    candidate: Candidate
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of the page. `sources` are those versions of its lineage that the caller may see; `chunks` its
    chunks that were found, best first."""

    row: PageRow
    ranked: RankedDocument
    channels: tuple[str, ...]
    supports: int
    contradicts: int
    sources: tuple[str, ...]
    lexical_relevance: float
    rerank_score: float | None
    chunks: tuple[ScoredChunk, ...] = ()
    explain: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of the page's documents, and how it came about. `rows` holds what was read of them on the way."""

    order: list[RankedDocument]
    chunks: Mapping[str, Sequence[ScoredChunk]]
    facts: Callable[[str], BoostFacts]
    active: Mapping[str, float]
    judged: Mapping[str, float] | None
    rows: Mapping[str, PageRow]


class Ranker:
    def __init__(self, pool: Pool, settings: Settings, models: ModelPool) -> None:
        self._pool = pool
        self._settings = settings
        self._models = models

    async def rank(
        self, plan: SearchPlan, visibility: Visibility, found: Retrieved, run: SearchRun, now: datetime
    ) -> Ranking:
        """The order of at least `limit` documents, where so many were found."""
        tenant = visibility.caller.tenant_id
        recipe = found.scene.recipe
        best = best_chunks(recipe, found.lexical, found.dense, max(CONSIDERED, 2 * plan.limit))
        first = {document: chunks[0].candidate for document, chunks in best.items()}
        fused = {document: chunks[0].score for document, chunks in best.items()}
        with run.timed("around"):
            async with connection(self._pool) as conn:
                beside = await around(conn, tenant, found.scene.generation_id, list(first.values()))
                speaking = await _speaking(conn, visibility, beside)
        # What was known at a past moment must not depend on what came between since.
        active = fused
        if not plan.as_of:
            active = held(lifted(fused, beside.places, recipe.fusion.surroundings_weight), fused, _said(found))
        facts = cache(lambda document: _facts(first[document], beside, speaking))
        order = sorted(active, key=lambda document: (-active[document], -_when(first[document]), document))
        judged, rows = await self._reranked(recipe, plan, tenant, [first[document] for document in order], run)
        ranked = _boosted(order, active, judged, facts, recipe, now, max(plan.limit, LEAST_POOL))
        if recipe.mmr_lambda < 1.0 and found.target is not None:
            with run.timed("diversity"):
                ranked = await self._diverse(ranked, plan, tenant, found.target.table, recipe.mmr_lambda, first)
        return Ranking(ranked[: plan.limit], best, facts, active, judged, rows)

    async def recent(self, plan: SearchPlan, visibility: Visibility, found: Retrieved, now: datetime) -> Ranking:
        """Without a query: the documents last seen, in that order."""
        listed = found.lexical.candidates if found.lexical is not None else ()
        first = {candidate.document_id: candidate for candidate in reversed(listed)}
        async with connection(self._pool) as conn:
            beside = await around(conn, visibility.caller.tenant_id, found.scene.generation_id, list(first.values()))
            speaking = await _speaking(conn, visibility, beside)
        facts = cache(lambda document: _facts(first[document], beside, speaking))
        same = dict.fromkeys(first, 1.0)
        scored = {item.document_id: item for item in boosted(same, facts, found.scene.recipe, now)}
        order = list(dict.fromkeys(candidate.document_id for candidate in listed))[: plan.limit]
        chunks = {document: [ScoredChunk(candidate, 1.0)] for document, candidate in first.items()}
        return Ranking([scored[document] for document in order], chunks, facts, same, None, {})

    async def page(
        self, plan: SearchPlan, visibility: Visibility, found: Retrieved, ranking: Ranking, run: SearchRun
    ) -> list[Hit]:
        """The hits in order, with what they show; what is gone meanwhile is left out."""
        rows = dict(ranking.rows)
        wanted = [ranking.chunks[item.document_id][0].candidate.chunk_id for item in ranking.order]
        with run.timed("page"):
            async with connection(self._pool) as conn:
                missing = [chunk for chunk in wanted if chunk not in rows]
                if missing:
                    rows |= await page_rows(conn, visibility.caller.tenant_id, missing)
                sources = {source for chunk in wanted if chunk in rows for source in rows[chunk].sources}
                visible = await visible_versions(conn, visibility, sources) if sources else set()
        return [
            Hit(
                row=rows[chunk],
                ranked=item,
                channels=_channels(found, item.document_id) if not plan.blank else (),
                supports=ranking.facts(item.document_id).supports,
                contradicts=ranking.facts(item.document_id).contradicts,
                sources=tuple(source for source in rows[chunk].sources if source in visible),
                lexical_relevance=_lexical_relevance(found, item.document_id) if not plan.blank else 0.0,
                rerank_score=(ranking.judged or {}).get(item.document_id),
                chunks=tuple(ranking.chunks[item.document_id]),
                explain=_explained(item, found, ranking) if plan.explain else {},
            )
            for item, chunk in zip(ranking.order, wanted, strict=True)
            if chunk in rows
        ]

    async def _reranked(
        self, recipe: Recipe, plan: SearchPlan, tenant: str, order: Sequence[Candidate], run: SearchRun
    ) -> tuple[dict[str, float] | None, dict[str, PageRow]]:
        """The reranker's scores of the first RERANKED, and their rows; None without one, or where it cannot be had."""
        if recipe.rerank is None or not order:
            return None, {}
        async with connection(self._pool) as conn:
            rows = await page_rows(conn, tenant, [candidate.chunk_id for candidate in order[:RERANKED]])
        head = [candidate for candidate in order[:RERANKED] if candidate.chunk_id in rows]
        texts = [f"{rows[each.chunk_id].title}\n{rows[each.chunk_id].text}" for each in head]
        within = min(run.share(RERANK_SHARE), self._settings.rerank_timeout_ms / 1000)
        with run.timed("rerank"):
            try:
                reranker = self._models.reranker(self._endpoint(recipe.rerank), recipe.rerank.max_doc_chars)
                scores = await reranker.rerank(plan.query, texts, within)
            except RerankQueryTooLong:
                run.degrade(Degraded.RERANK_QUERY_TOO_LONG)
                return None, rows
            except EndpointFault:
                run.degrade(Degraded.RERANK_UNAVAILABLE)
                return None, rows
        return {each.document_id: score for each, score in zip(head, scores, strict=True)}, rows

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
        tenant: str,
        table: str,
        strength: float,
        first: Mapping[str, Candidate],
    ) -> list[RankedDocument]:
        size = max(LEAST_POOL, plan.limit)
        pool = {item.document_id: item for item in ranked[:size]}
        chunk_of = {document: first[document].chunk_id for document in pool}
        async with connection(self._pool) as conn:
            vectors = await chunk_vectors(conn, tenant, table, list(chunk_of.values()))
        order = diversified(
            list(pool),
            {document: item.score for document, item in pool.items()},
            {document: vectors[chunk] for document, chunk in chunk_of.items() if chunk in vectors},
            strength,
        )
        return [*(pool[document] for document in order), *ranked[size:]]


def best_chunks(
    recipe: Recipe, lexical: Found | None, dense: Found | None, at_most: int
) -> dict[str, list[ScoredChunk]]:
    """The chunks of the best documents, both best first: a document is as relevant as the best of its chunks."""
    fused = fuse(
        recipe.fusion,
        None if lexical is None else lexical.scores,
        None if dense is None else dense.scores,
    )
    known = {
        candidate.chunk_id: candidate
        for found in (lexical, dense)
        if found is not None
        for candidate in found.candidates
    }
    best: dict[str, list[ScoredChunk]] = {}
    for chunk_id, score in sorted(fused.items(), key=lambda item: (-item[1], item[0])):
        candidate = known[chunk_id]
        if candidate.document_id in best or len(best) < at_most:
            best.setdefault(candidate.document_id, []).append(ScoredChunk(candidate, score))
    return best


async def _speaking(conn: Connection, visibility: Visibility, beside: Around) -> dict[str, str]:
    """Of the versions that support or contradict, those that are active and that the caller sees, each with its
    document: corroboration counts nothing else, and a document once."""
    witnesses = {
        each for edges in (beside.supporters, beside.contradictors) for all_of in edges.values() for each in all_of
    }
    if not witnesses:
        return {}
    visible = await visible_versions(conn, visibility, witnesses)
    return await active_documents(conn, visibility.caller.tenant_id, visible)


def _when(candidate: Candidate) -> float:
    return candidate.occurred_at.timestamp()


def _facts(candidate: Candidate, beside: Around, speaking: Mapping[str, str]) -> BoostFacts:
    def counted(edges: Mapping[str, Sequence[str]]) -> int:
        if not edges:
            return 0
        told = (*edges.get(candidate.version_id, ()), *edges.get(candidate.document_id, ()))
        return len({speaking[version] for version in told if version in speaking})

    return BoostFacts(
        authority=candidate.authority,
        temporal_class=TemporalClass(candidate.temporal_class),
        occurred_at=candidate.occurred_at,
        valid_until=candidate.valid_until,
        supports=counted(beside.supporters),
        contradicts=counted(beside.contradictors),
    )


def _boosted(
    order: Sequence[str],
    active: Mapping[str, float],
    judged: Mapping[str, float] | None,
    facts: Callable[[str], BoostFacts],
    recipe: Recipe,
    now: datetime,
    first: int,
) -> list[RankedDocument]:
    if judged is None:
        return boosted(active, facts, recipe, now, first=first)
    rest = {document: active[document] for document in order if document not in judged}
    return followed_by(boosted(judged, facts, recipe, now), boosted(rest, facts, recipe, now))


def _channels(found: Retrieved, document: str) -> tuple[str, ...]:
    channels = (("lexical", found.lexical), ("dense", found.dense))
    return tuple(name for name, channel in channels if channel is not None and document in channel.documents)


def _lexical_relevance(found: Retrieved, document: str) -> float:
    """How much of what the query asks the document says, 1 for each term once; see core.evidence."""
    if found.lexical is None or document not in found.lexical.documents:
        return 0.0
    if found.scene.recipe.fusion.lexical == "and":
        return 1.0
    total = found.scene.plan.total_weight
    return min(1.0, found.lexical.documents[document] / total) if total > 0.0 else 0.0


def _said(found: Retrieved) -> dict[str, float]:
    """By document the share of the query's known words that it has; see core.surroundings."""
    known = found.scene.plan.known
    if found.lexical is None or known <= 0.0 or found.scene.recipe.fusion.lexical == "and":
        return {}
    return {document: score / known for document, score in found.lexical.documents.items()}


def _explained(item: RankedDocument, found: Retrieved, ranking: Ranking) -> dict[str, object]:
    document = item.document_id
    explained: dict[str, object] = {
        "fused": ranking.chunks[document][0].score,
        "withSurroundings": ranking.active[document],
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
    if ranking.judged and document in ranking.judged:
        explained["rerank"] = ranking.judged[document]
    return explained
