"""Retrieval: which generation answers, what its channels find, lexical and the query's embedding side by side."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from memory_plane.contracts.enums import Degraded, GenerationState
from memory_plane.contracts.errors import NotFound, Unavailable
from memory_plane.contracts.recipe import Recipe
from memory_plane.core.fusion import DENSE_DEPTH, LEXICAL_DEPTH
from memory_plane.core.lexical_query import LexicalPlan, MatchQuery, ParsedQuery, all_of, parse, plan_terms, quoted
from memory_plane.core.vector_scan import VectorScan, choose, width
from memory_plane.core.visibility import Visibility
from memory_plane.models.errors import EndpointFault
from memory_plane.models.isolate import Vector
from memory_plane.plane.embed_target import EmbedTarget
from memory_plane.plane.embedding import Embedding
from memory_plane.plane.search_channels import Fetch, Found, Wanted, gather
from memory_plane.plane.search_request import SearchPlan
from memory_plane.plane.search_run import SearchRun
from memory_plane.plane.statistics_upkeep import StatisticsUpkeep
from memory_plane.store import dense, lexical, search_rows
from memory_plane.store.candidates import Candidate
from memory_plane.store.database import Connection, Pool, connection
from memory_plane.store.lexical_statistics import CorpusSize, count_now, marker
from memory_plane.store.search_start import start
from memory_plane.store.vectors import as_parameter

MOST_CANDIDATES = 500
SMALL_SET = 500
"""Eligible documents up to which both channels read exactly these and nothing else."""
LARGE_FOR = 30.0
"""Seconds for which a set that was found large is not counted again; one that shrinks meanwhile is only slower."""
REMEMBERED = 4096
"""Tenants whose live generation, and sets that were found large, are remembered."""
EMBED_SHARE = 0.4
UNPRUNED = 1_000_000
_READABLE = {GenerationState.LIVE, GenerationState.STAGED, GenerationState.ARCHIVED}


@dataclass(frozen=True, slots=True)
class Scene:
    """What one search looks at. `documents` is the small set it is bounded to, None: the whole generation."""

    generation_id: str
    recipe: Recipe
    transformed: bool
    query: ParsedQuery
    plan: LexicalPlan
    size: CorpusSize
    vectors: int
    required: tuple[str, ...]
    excluded: tuple[str, ...]
    documents: list[str] | None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """None for a channel that did not run."""

    scene: Scene
    lexical: Found | None
    dense: Found | None
    target: EmbedTarget | None
    scan: VectorScan | None = None


@dataclass(frozen=True, slots=True)
class _Early:
    """A query's embedding that was asked for under a generation that may turn out not to be the one searched."""

    generation_id: str
    task: asyncio.Task[tuple[EmbedTarget | None, Vector | None]]


class Retriever:
    def __init__(self, pool: Pool, embedding: Embedding, upkeep: StatisticsUpkeep, language: str) -> None:
        self._pool = pool
        self._embedding = embedding
        self._upkeep = upkeep
        self._language = language
        self._large: OrderedDict[Hashable, float] = OrderedDict()
        self._live: dict[str, str] = {}

    async def retrieve(self, plan: SearchPlan, visibility: Visibility, run: SearchRun) -> Retrieved | None:
        """None for a tenant that has no generation yet, which is a tenant without documents."""
        tenant = visibility.caller.tenant_id
        query = parse(plan.query)
        early = self._embed_early(tenant, plan, query, run)
        try:
            with run.timed("start"):
                async with connection(self._pool) as conn:
                    scene = await self._scene(conn, tenant, plan, query)
            if scene is None:
                return None
            if plan.as_of is not None and scene.transformed and not scene.recipe.history:
                run.degrade(Degraded.HISTORY_PARTIAL)
            if plan.blank:
                return Retrieved(scene, await self._recent(scene, plan, visibility, run), None, None)
            return await self._channels(scene, plan, visibility, early, run)
        finally:
            if early is not None:
                _drop(early.task)

    def _embed_early(self, tenant: str, plan: SearchPlan, query: ParsedQuery, run: SearchRun) -> _Early | None:
        """The endpoint is most of what a search waits for, so it is asked before the database has said which
        generation is live: under the one that was live last, which holds for all searches but the first after a cut."""
        generation = plan.generation or self._live.get(tenant)
        if plan.blank or generation is None:
            return None
        return _Early(generation, asyncio.create_task(self._query_vector(tenant, generation, plan, query, run)))

    async def _channels(
        self, scene: Scene, plan: SearchPlan, visibility: Visibility, early: _Early | None, run: SearchRun
    ) -> Retrieved:
        """Lexical beside the query's embedding and what is near it."""
        documents = min(MOST_CANDIDATES, plan.limit * scene.recipe.overfetch)
        near = asyncio.create_task(self._near(scene, plan, visibility, early, documents, run))
        try:
            found = await self._lexical(scene, plan, visibility, Wanted(LEXICAL_DEPTH, documents), run)
            return replace(await near, lexical=found)
        finally:
            _drop(near)

    async def _near(
        self,
        scene: Scene,
        plan: SearchPlan,
        visibility: Visibility,
        early: _Early | None,
        documents: int,
        run: SearchRun,
    ) -> Retrieved:
        tenant = visibility.caller.tenant_id
        if scene.recipe.embed is None:
            run.degrade(Degraded.DENSE_UNAVAILABLE, Degraded.LEXICAL_ONLY)
            return Retrieved(scene, None, None, None)
        if early is not None and early.generation_id == scene.generation_id:
            target, vector = await early.task
        else:
            target, vector = await self._query_vector(tenant, scene.generation_id, plan, scene.query, run)
        if target is None or vector is None:
            run.degrade(Degraded.DENSE_UNAVAILABLE)
            return Retrieved(scene, None, None, target)
        scan = choose(scene.size.chunk_count, scene.vectors, max(DENSE_DEPTH, documents))
        if scene.recipe.fusion.neighbour_weight > 0.0:
            scan = VectorScan.EXACT  # the graph orders by one vector a chunk, and there are two
        near = await self._dense(scene, plan, visibility, target, vector, scan, Wanted(DENSE_DEPTH, documents), run)
        return Retrieved(scene, None, near, target, scan)

    async def _scene(self, conn: Connection, tenant: str, plan: SearchPlan, query: ParsedQuery) -> Scene | None:
        begun = await start(conn, tenant, plan.generation, self._language, query)
        if begun is None or begun.state not in _READABLE:
            if plan.generation is None:
                return None
            raise NotFound("There is no staged, live or archived generation of this id in the tenant.")
        if plan.generation is None:
            self._remember_live(tenant, begun.generation_id)
        self._upkeep.notice(tenant, begun.generation_id, begun.size, begun.head)
        size, terms = begun.size, begun.terms
        if size is None:
            size, terms = await count_now(conn, tenant, begun.generation_id, terms)
        documents = None
        if plan.eligibility.narrow:
            documents = await self._small_set(conn, tenant, plan)
        budget = {} if documents is None else {"budget": UNPRUNED}
        return Scene(
            generation_id=begun.generation_id,
            recipe=Recipe.model_validate(begun.recipe),
            transformed=begun.transformed,
            query=query,
            plan=plan_terms(terms, size.chunk_count, **budget),
            size=size,
            vectors=begun.vectors,
            required=(*filter(None, begun.required), *map(all_of, query.phrase_grams)),
            excluded=(*filter(None, begun.excluded), *map(all_of, query.excluded_grams)),
            documents=documents,
        )

    def _remember_live(self, tenant: str, generation_id: str) -> None:
        if len(self._live) >= REMEMBERED and tenant not in self._live:
            self._live.clear()
        self._live[tenant] = generation_id

    async def _small_set(self, conn: Connection, tenant: str, plan: SearchPlan) -> list[str] | None:
        key = (tenant, repr(plan.eligibility))
        known_until = self._large.get(key, 0.0)
        if known_until > time.monotonic():
            return None
        documents = await search_rows.small_set(conn, tenant, plan.eligibility, SMALL_SET)
        if documents is None:
            self._large[key] = time.monotonic() + LARGE_FOR
            self._large.move_to_end(key)
            while len(self._large) > REMEMBERED:
                self._large.popitem(last=False)
        return documents

    async def _recent(self, scene: Scene, plan: SearchPlan, visibility: Visibility, run: SearchRun) -> Found | None:
        tenant = visibility.caller.tenant_id

        async def fetch(conn: Connection, limit: int) -> list[Candidate]:
            return await search_rows.recent(conn, tenant, scene.generation_id, plan.eligibility, limit)

        return await self._channel(
            "recent", Degraded.PAGE_INCOMPLETE, fetch, visibility, Wanted(plan.limit, plan.limit), run
        )

    async def _query_vector(
        self, tenant: str, generation_id: str, plan: SearchPlan, query: ParsedQuery, run: SearchRun
    ) -> tuple[EmbedTarget | None, Vector | None]:
        """None where there is nothing to ask, or no answer in time."""
        with run.timed("embed"):
            resolution = await self._embedding.resolve(tenant, generation_id)
            target = resolution.target if resolution is not None else None
            if target is None:
                return None, None
            try:
                meaning = _meaning(plan.query, query)
                return target, await self._embedding.query_vector(target, meaning, run.share(EMBED_SHARE))
            except EndpointFault:
                return target, None

    async def _lexical(
        self, scene: Scene, plan: SearchPlan, visibility: Visibility, wanted: Wanted, run: SearchRun
    ) -> Found | None:
        match = _match(scene)
        searched = await self._lexical_pass(scene, match, plan, visibility, wanted, run)
        strict = scene.query.only_phrases or scene.recipe.fusion.lexical == "and"
        if searched is not None and not searched.candidates and match.required and not strict:
            # Nobody has written that wording. Its words still say what is looked for.
            loose = MatchQuery(match.marker, match.plan, (), match.excluded)
            return await self._lexical_pass(scene, loose, plan, visibility, wanted, run)
        return searched

    async def _lexical_pass(
        self, scene: Scene, match: MatchQuery, plan: SearchPlan, visibility: Visibility, wanted: Wanted, run: SearchRun
    ) -> Found | None:
        what = lexical.LexicalSearch(
            tenant_id=visibility.caller.tenant_id,
            generation_id=scene.generation_id,
            match=match,
            average_length=scene.size.average_length,
            scoring=scene.recipe.fusion.lexical,
            documents=scene.documents,
        )

        async def fetch(conn: Connection, limit: int) -> list[Candidate]:
            return await lexical.search(conn, what, plan.eligibility, limit)

        return await self._channel("lexical", Degraded.LEXICAL_UNAVAILABLE, fetch, visibility, wanted, run)

    async def _dense(
        self,
        scene: Scene,
        plan: SearchPlan,
        visibility: Visibility,
        target: EmbedTarget,
        vector: Vector,
        scan: VectorScan,
        wanted: Wanted,
        run: SearchRun,
    ) -> Found | None:
        what = dense.DenseSearch(
            tenant_id=visibility.caller.tenant_id,
            generation_id=scene.generation_id,
            table=target.table,
            dims=target.model.dims,
            vector=as_parameter(vector),
            scan=scan,
            documents=scene.documents,
            restriction=_restriction(scene),
            neighbour_weight=scene.recipe.fusion.neighbour_weight,
            width=width(scene.size.chunk_count, scene.vectors, max(wanted.rows, wanted.documents)),
        )

        async def fetch(conn: Connection, limit: int) -> list[Candidate]:
            nonlocal what
            rows = await dense.search(conn, what, plan.eligibility, limit)
            if len(rows) < limit and what.scan is VectorScan.GRAPH and what.documents is None:
                # The graph ran dry before it had found enough that may be shown.
                what = replace(what, scan=VectorScan.EXACT)
                rows = await dense.search(conn, what, plan.eligibility, limit)
            return rows

        return await self._channel("dense", Degraded.DENSE_UNAVAILABLE, fetch, visibility, wanted, run)

    async def _channel(
        self, stage: str, unavailable: Degraded, fetch: Fetch, visibility: Visibility, wanted: Wanted, run: SearchRun
    ) -> Found | None:
        """None where the channel's statement took too long: the other one answers."""
        with run.timed(stage):
            try:
                async with asyncio.timeout(run.left), connection(self._pool) as conn:
                    found = await gather(conn, fetch, visibility, wanted, run)
            except TimeoutError:
                run.degrade(unavailable)
                return None
            except Unavailable as failure:
                if failure.code != "statement_timeout":
                    raise
                run.degrade(unavailable)
                return None
        if found.incomplete:
            run.degrade(Degraded.PAGE_INCOMPLETE)
        return found


def _drop(task: asyncio.Task[Any]) -> None:
    """Nobody waits for it any more, nor for what it may have raised."""
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


def _match(scene: Scene) -> MatchQuery:
    plan = scene.plan
    required = scene.required
    if scene.recipe.fusion.lexical == "and":
        required = (*required, *(quoted(term.lexeme) for term in plan.scored))
        plan = LexicalPlan(scored=plan.scored)
    return MatchQuery(marker(scene.generation_id), plan, required, scene.excluded)


def _restriction(scene: Scene) -> str:
    """What the query's syntax asks of every channel: what it rules out, and its wording where it is nothing else."""
    required = scene.required if scene.query.only_phrases else ()
    return MatchQuery("", LexicalPlan(), required, scene.excluded).restriction


def _meaning(query: str, parsed: ParsedQuery) -> str:
    """The text to embed: without what it rules out."""
    if not (parsed.excluded or parsed.excluded_grams):
        return query
    return " ".join((parsed.words, *parsed.phrases)).strip() or query
