"""The lexical channel: chunks with any of the query's terms, ranked by BM25 computed from the text index's own rows.

One GIN scan finds the chunks that have the generation's marker and a driving term. How often a term occurs is read
back out of `ts_rank`, which for one term is 6/π² times the sum of 1/i² over its n occurrences: rank / (1 - rank) is
1.6 n within 3 %. It looks at that lexeme alone, where unnesting a tsvector would look at all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_plane.core.lexical_query import MatchQuery, WeightedTerm, quoted
from memory_plane.store.candidates import Candidate, candidates, eligible_sql
from memory_plane.store.database import SAME, Connection
from memory_plane.store.eligible import Eligibility

K1 = 1.2
B = 0.3
"""BM25: how soon repetition saturates, and how much length counts. Measured, see docs/decisions (retrieval)."""
LONGEST = 3.0
"""Lengths of the average that count at most: among short notes a whole chunk of a document would count for nothing."""

_RANKS_PER_OCCURRENCE = 1.6
_SIZES = (1, 2, 4, 6, 8, 12, 16, 24, 32)
_EVEN = "{1,1,1,1}"
"""Title and text weigh the same: what `ts_rank` is to make of the classes D, C, B and A."""


@dataclass(frozen=True, slots=True)
class LexicalSearch:
    """What to look for, where, and how to score it. `documents` bounds the search to a small set, read whole."""

    tenant_id: str
    generation_id: str
    match: MatchQuery
    average_length: float
    scoring: str = "bm25"
    documents: Sequence[str] | None = None


async def search(conn: Connection, what: LexicalSearch, eligibility: Eligibility, limit: int) -> list[Candidate]:
    """The best `limit` eligible chunks, best first."""
    if not what.match.plan.scored:
        return []
    params: list[object] = [what.tenant_id, what.generation_id, what.match.tsquery]
    columns, score = _scoring(what, params)
    # MATERIALIZED, or each rank would be computed as often as the score names it.
    ranked = f"""
        WITH matched AS MATERIALIZED (SELECT c.id, c.version_id, {columns} FROM {_source(what.documents, params)})
        SELECT id AS chunk_id, version_id, {score} AS score FROM matched ORDER BY 3 DESC, 1
    """  # noqa: S608 - made of constants and placeholders
    return candidates(await conn.fetch(eligible_sql(ranked, eligibility, params, limit), *params))


def _source(documents: Sequence[str] | None, params: list[object]) -> str:
    """The matching chunks: of the whole generation by the text index, of a few documents by theirs. What must not
    be served by another index is written so that none serves it."""
    if documents is None:
        return f"""memory.chunk c
            WHERE c.tenant_id {SAME} $1 AND c.generation_id {SAME} $2 AND c.text_fts @@ $3::tsquery"""
    params.append(list(documents))
    return f"""memory.version v
            JOIN memory.chunk c ON c.version_id = v.id AND c.generation_id = $2 AND c.tenant_id {SAME} $1
            WHERE v.tenant_id {SAME} $1 AND v.document_id = ANY (${len(params)}::text[])
              AND (c.text_fts @@ $3::tsquery) IS TRUE"""


def _scoring(what: LexicalSearch, params: list[object]) -> tuple[str, str]:
    """The columns read from each match, and the score over them: one column a term, so that the statement depends on
    the number of terms alone."""
    if what.scoring == "and":
        params.append(" & ".join(quoted(term.lexeme) for term in what.match.plan.scored))
        return f"ts_rank(c.text_fts, ${len(params)}::tsquery) AS r0", "r0"
    params.append(max(what.average_length, 1.0))
    # tf (k1 + 1) / (tf + k1 (1 - b + b length)), where tf is rank / (1 - rank) / 1.6, comes to
    # rank (k1 + 1) / (rank + (1 - rank) 1.6 k1 (1 - b + b length)).
    scale = _RANKS_PER_OCCURRENCE * K1
    length = f"least(c.token_count / ${len(params)}::float8, {LONGEST})"
    columns = [f"{scale * (1.0 - B)} + {scale * B} * {length} AS saturation"]
    summands = []
    for number, term in enumerate(_padded(what.match.plan.scored)):
        params.append(None if term is None else quoted(term.lexeme))
        columns.append(f"ts_rank('{_EVEN}', c.text_fts, ${len(params)}::tsquery) AS r{number}")
        params.append(None if term is None else term.weight * (1.0 if what.scoring == "idf" else K1 + 1.0))
        weight = f"${len(params)}::float8"
        if what.scoring == "idf":
            summands.append(f"CASE WHEN r{number} > 0 THEN {weight} ELSE 0 END")
        else:
            summands.append(f"coalesce({weight} * r{number} / (r{number} + (1 - r{number}) * saturation), 0)")
    return ", ".join(columns), " + ".join(summands)


def _padded(terms: Sequence[WeightedTerm]) -> Sequence[WeightedTerm | None]:
    """With nulls up to the next size: a few statements stay prepared, and planned, for all queries. Of a null no rank
    is computed."""
    size = next((size for size in _SIZES if size >= len(terms)), len(terms))
    return [*terms, *([None] * (size - len(terms)))]
