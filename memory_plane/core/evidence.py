"""How much the top hit deserves to be believed: `strong` only through a gate, `none` iff there is no hit."""

from dataclasses import dataclass

from memory_plane.contracts.enums import CreatedByKind, Evidence, Provenance

LEXICAL_FLOOR = 0.5
"""Lexical relevance is the hit's BM25 score over the summed weights (IDF) of all the query's terms: 1 when it has
each of them once in a text of average length, 0 when it has none. A rare name weighs more than a common verb, and a
term that the memory has never seen weighs most, so a question about what is not there stays weak."""
RERANK_FLOOR = 0.6
"""On the rerankers' calibrated scale, see models/rerank.py."""
AUTHORITY_FLOOR = 0.3
SUPPORTS_FLOOR = 2


@dataclass(frozen=True, slots=True)
class TopHit:
    """What the gate looks at. `relevance` is lexical; `rerank_score` None: no reranker judged it."""

    relevance: float
    rerank_score: float | None
    authority: float
    provenance: Provenance
    created_by_kind: CreatedByKind
    supports: int


def evidence(top: TopHit | None, *, any_live: bool = False) -> Evidence:
    """`any_live`: a hit of the page came from a live source, whose word the memory cannot vouch for."""
    if top is None:
        return Evidence.NONE
    if any_live:
        return Evidence.WEAK
    relevant = top.relevance >= LEXICAL_FLOOR or (top.rerank_score is not None and top.rerank_score >= RERANK_FLOOR)
    stated = top.provenance is Provenance.STATED and top.created_by_kind is CreatedByKind.HUMAN
    if relevant and top.authority >= AUTHORITY_FLOOR and (stated or top.supports >= SUPPORTS_FLOOR):
        return Evidence.STRONG
    return Evidence.WEAK
