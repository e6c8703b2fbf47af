"""The first statement of a search: the generation it reads, and the query as the text index sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_plane.contracts.enums import GenerationState
from memory_plane.core.lexical_query import ParsedQuery, Term
from memory_plane.store.database import Connection
from memory_plane.store.lexical_statistics import CorpusSize


@dataclass(frozen=True, slots=True)
class SearchStart:
    """`terms` are the query's words with their counts, `required` and `excluded` its phrases as tsquery text.

    `size` None: the generation has no statistics yet. `head` is the tenant's last feed position. `vectors` estimates
    the rows of the model's table, of all tenants.
    """

    generation_id: str
    state: GenerationState
    recipe: Mapping[str, Any]
    transformed: bool
    head: int
    size: CorpusSize | None
    vectors: int
    terms: tuple[Term, ...]
    required: tuple[str, ...]
    excluded: tuple[str, ...]


_START = """
SELECT g.id, g.state, g.recipe, coalesce(t.position, 0) AS head,
       c.chunk_count, c.total_length, c.through_position,
       EXISTS (SELECT FROM memory.transform_run r WHERE r.generation_id = g.id) AS transformed,
       (SELECT reltuples FROM pg_class WHERE oid = to_regclass('memory.embedding_' || g.model_key)) AS vectors,
       terms.lexemes, terms.counts,
       ARRAY(SELECT phraseto_tsquery($3::regconfig, phrase)::text
             FROM unnest($6::text[]) WITH ORDINALITY AS p (phrase, place) ORDER BY place) AS required,
       ARRAY(SELECT phraseto_tsquery($3::regconfig, phrase)::text
             FROM unnest($7::text[]) WITH ORDINALITY AS p (phrase, place) ORDER BY place) AS excluded
FROM memory.generation g
LEFT JOIN memory.tenant_counter t ON t.tenant_id = $1
LEFT JOIN memory.lexical_corpus c ON c.tenant_id = $1 AND c.generation_id = g.id
CROSS JOIN LATERAL (
    SELECT array_agg(q.lexeme) AS lexemes, array_agg(coalesce(l.chunk_count, 0)) AS counts
    FROM (
        SELECT unnest(tsvector_to_array(to_tsvector($3::regconfig, $4))) AS lexeme
        UNION
        SELECT unnest($5::text[])
    ) q
    LEFT JOIN memory.lexical_term l
        ON l.tenant_id = $1 AND l.generation_id = g.id AND l.term_hash = hashtextextended(q.lexeme, 0)
) terms
WHERE g.tenant_id = $1 AND {which}
"""
_LIVE = _START.format(which="g.state = 'live' AND $2::text IS NULL")
_NAMED = _START.format(which="g.id = $2")


async def start(
    conn: Connection, tenant_id: str, generation_id: str | None, language: str, query: ParsedQuery
) -> SearchStart | None:
    """The named generation or the live one; None where the tenant has none such."""
    row = await conn.fetchrow(
        _LIVE if generation_id is None else _NAMED,
        tenant_id,
        generation_id,
        language,
        " ".join((query.words, *query.phrases)),
        list(dict.fromkeys([*query.grams, *(gram for phrase in query.phrase_grams for gram in phrase)])),
        list(query.phrases),
        list(query.excluded),
    )
    if row is None:
        return None
    size = None
    if row["chunk_count"]:
        size = CorpusSize(row["chunk_count"], row["total_length"] / row["chunk_count"], row["through_position"])
    return SearchStart(
        generation_id=row["id"],
        state=GenerationState(row["state"]),
        recipe=row["recipe"],
        transformed=row["transformed"],
        head=row["head"],
        size=size,
        vectors=max(0, int(row["vectors"] or 0)),
        terms=tuple(
            Term(lexeme, count) for lexeme, count in zip(row["lexemes"] or (), row["counts"] or (), strict=True)
        ),
        required=tuple(row["required"]),
        excluded=tuple(row["excluded"]),
    )
