"""Hits as the wire shows them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from memory_plane.contracts.enums import Evidence
from memory_plane.contracts.wire import Attribution, Passage, SearchItem
from memory_plane.core.citations import citation
from memory_plane.core.evidence import TopHit, evidence
from memory_plane.core.lexical_query import ParsedQuery
from memory_plane.core.live_sources import LOCAL, LiveHit, Ranked, merged
from memory_plane.core.snippets import MAX_SNIPPET_CHARS, snippet
from memory_plane.plane.search_rank import Hit


def local_item(hit: Hit, query: ParsedQuery, passages: list[Passage] | None = None) -> SearchItem:
    row = hit.row
    return SearchItem(
        document_id=row.document_id,
        title=row.title,
        snippet=snippet(row.text, " ".join((query.words, *query.phrases, *_unmarked(query)))),
        score=hit.ranked.score,
        kind=row.kind,
        citation=citation(row.adapter, row.external_ref, row.document_id),
        updated_at=row.last_seen_at,
        attribution=Attribution(
            version_id=row.version_id,
            version=row.version,
            provenance=row.provenance,
            source_class=row.source_class,
            temporal_class=row.temporal_class,
            created_by_kind=row.created_by_kind,
            generator_agent_id=row.generator_agent_id,
            occurred_at=row.occurred_at,
            valid_until=row.valid_until,
            supports=hit.supports,
            contradicts=hit.contradicts,
            derived_from=list(hit.sources),
            channels=list(hit.channels),
        ),
        passages=passages,
        explain=dict(hit.explain) or None,
    )


def _unmarked(query: ParsedQuery) -> list[str]:
    """The unspaced words as they are written: a gram is a marker and the characters."""
    return [gram[1:] for gram in (*query.grams, *(gram for phrase in query.phrase_grams for gram in phrase))]


def live_item(hit: LiveHit, score: float) -> SearchItem:
    identifier = f"{hit.adapter}:{hit.external_ref}"
    return SearchItem(
        document_id=identifier,
        title=hit.title,
        snippet=snippet(hit.snippet, "", MAX_SNIPPET_CHARS),
        score=score,
        kind=hit.kind,
        citation=citation(hit.adapter, hit.external_ref, identifier),
        updated_at=hit.occurred_at,
    )


def merged_items(
    local: Sequence[SearchItem], live: Mapping[str, Sequence[LiveHit]], limit: int, now: datetime
) -> list[SearchItem]:
    """The page of memory and live sources together."""
    channels = [(LOCAL, [_ranked_local(place, item) for place, item in enumerate(local)])]
    channels += [
        (source, [_ranked_live(place, hit) for place, hit in enumerate(found)]) for source, found in live.items()
    ]
    page: list[SearchItem] = []
    for channel, key, score in merged(channels, now)[:limit]:
        if channel == LOCAL:
            page.append(local[int(key)].model_copy(update={"score": score}))
        else:
            page.append(live_item(live[channel][int(key)], score))
    return page


def _ranked_local(place: int, item: SearchItem) -> Ranked:
    occurred_at = item.attribution.occurred_at if item.attribution is not None else None
    cited = item.citation
    return Ranked(f"{place:06d}", cited.adapter, cited.external_ref, item.score, occurred_at)


def _ranked_live(place: int, hit: LiveHit) -> Ranked:
    return Ranked(f"{place:06d}", hit.adapter, hit.external_ref, hit.score, hit.occurred_at)


def judged_evidence(page: Sequence[SearchItem], local: Sequence[Hit]) -> Evidence:
    if not page:
        return evidence(None)
    by_id = {hit.row.document_id: hit for hit in local}
    first = by_id.get(page[0].document_id)
    if first is None:
        return Evidence.WEAK
    top = TopHit(
        relevance=first.lexical_relevance,
        rerank_score=first.rerank_score,
        authority=first.row.authority,
        provenance=first.row.provenance,
        created_by_kind=first.row.created_by_kind,
        supports=first.supports,
    )
    return evidence(top, any_live=any(item.document_id not in by_id for item in page))
