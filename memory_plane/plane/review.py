"""Judging a generation by searching it: the review of a staged one beside live, and whether live answers after a cut.

Queries are titles of the tenant's own documents. They stay in here: what leaves are counts and shares.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from memory_plane.contracts.enums import Degraded, GrantEffect, GrantOrigin
from memory_plane.contracts.errors import PlaneError
from memory_plane.contracts.transforms import Review, Standing, VerifyResult
from memory_plane.contracts.wire import SearchRequest
from memory_plane.core.caller import Caller
from memory_plane.core.comparison import overlap, rank_correlation
from memory_plane.core.grants import GrantRule
from memory_plane.core.visibility import Visibility, VisibilityScope
from memory_plane.plane.search import Search
from memory_plane.store import generations, library, transforms
from memory_plane.store.database import Pool, connection
from memory_plane.store.lexical_statistics import refresh

QUERIES = 25
DEPTH = 10
RECENT = 500
VERIFIED_BY = 5
"""Documents among which the titles are picked, the last seen."""
QUERY_CHARS = 200
OPERATOR = "memory-operator"


class Reviewing:
    def __init__(self, pool: Pool, search: Search) -> None:
        self._pool = pool
        self._search = search

    async def review(self, standing: Standing) -> Review:
        """Compare the run's generation with live and keep the review. Idempotent: a later one replaces it."""
        tenant, run_id = standing.tenant_id, standing.run_id
        await refresh(self._pool, tenant, run_id)
        titles = await self._titles(tenant)
        pairs = [(await self._found(tenant, title, None), await self._found(tenant, title, run_id)) for title in titles]
        overlaps = [overlap(live, staged) for live, staged in pairs if live]
        correlations = [each for live, staged in pairs if (each := rank_correlation(live, staged)) is not None]
        async with connection(self._pool) as conn:
            generation = await generations.generation_row(conn, tenant, run_id)
            review = Review(
                at=datetime.now(UTC),
                versions=standing.versions,
                chunks=standing.chunks,
                failures=standing.failed,
                lag=standing.lag,
                model=standing.model,
                endpoint=standing.endpoint,
                dims=generation.dims if generation else None,
                queries=len(titles),
                overlap=_mean(overlaps),
                rank_correlation=_mean(correlations),
            )
            await transforms.keep_review(conn, tenant, run_id, review)
        return review

    async def verify(self, tenant_id: str) -> VerifyResult:
        """Whether a search of the live generation answers with what there is."""
        titles = await self._titles(tenant_id)
        if not titles:
            return VerifyResult(verified=True)
        try:
            # A title may be made of words that are in every text, which find nothing: so several are tried.
            for title in titles[:VERIFIED_BY]:
                answer = await self._search.search(_operator(tenant_id), SearchRequest(query=title, limit=DEPTH))
                if answer.items:
                    break
        except PlaneError as failure:
            return VerifyResult(verified=False, problem=f"A search failed: {failure.detail}"[:1000])
        degraded = answer.degraded or []
        if not answer.items:
            problem = "Searches for the titles of documents found nothing."
        elif Degraded.DENSE_UNAVAILABLE in degraded and Degraded.LEXICAL_ONLY not in degraded:
            problem = "Searches match words alone: the model's endpoint did not answer."
        else:
            return VerifyResult(verified=True, degraded=degraded)
        return VerifyResult(verified=False, degraded=degraded, problem=problem)

    async def _titles(self, tenant_id: str) -> Sequence[str]:
        async with connection(self._pool) as conn:
            recent = await library.recent(conn, tenant_id, VisibilityScope(True, OPERATOR), None, RECENT)
        titles = list(dict.fromkeys(row["title"][:QUERY_CHARS] for row in recent))
        apart = max(1, len(titles) // QUERIES)
        return titles[::apart][:QUERIES]

    async def _found(self, tenant_id: str, title: str, generation_id: str | None) -> list[str]:
        request = SearchRequest(query=title, limit=DEPTH, generation=generation_id, include_evidence=False)
        answer = await self._search.search(_operator(tenant_id), request)
        return [item.document_id for item in answer.items]


def _operator(tenant_id: str) -> Visibility:
    """Who sees all of a tenant: no principal has this visibility, it never leaves the process."""
    everything = GrantRule("", OPERATOR, None, "*", "*", GrantEffect.ALLOW, GrantOrigin.SYSTEM)
    return Visibility(Caller(tenant_id, OPERATOR), [everything], datetime.now(UTC))


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None
