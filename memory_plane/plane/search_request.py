"""What a search request may ask for, said before any work is done."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Forbidden, Invalid
from memory_plane.contracts.wire import SearchRequest
from memory_plane.core.live_sources import LOCAL
from memory_plane.core.text import clean_json, clean_text
from memory_plane.core.visibility import Visibility
from memory_plane.store.eligible import Eligibility, Filters

MAX_QUERY_CHARS = 4096
MAX_FILTER_VALUES = 100
MAX_LIMIT_WIRE = 50
MAX_LIMIT = 100
"""In process."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """A checked request. `live` are the ids of the live sources to ask, `local` whether to ask the memory."""

    query: str
    limit: int
    eligibility: Eligibility
    local: bool
    live: tuple[str, ...]
    generation: str | None
    as_of: datetime | None
    include_evidence: bool
    passages: int
    explain: bool

    @property
    def blank(self) -> bool:
        return not self.query.strip()


def checked(
    request: SearchRequest, visibility: Visibility, known_sources: Collection[str], max_limit: int = MAX_LIMIT_WIRE
) -> SearchPlan:
    """Raises Invalid or Forbidden with a sentence."""
    if not 1 <= request.limit <= max_limit:
        raise Invalid(f"limit must be a whole number from 1 to {max_limit}.", code="invalid")
    if len(request.query) > MAX_QUERY_CHARS:
        raise Invalid(f"The query is longer than {MAX_QUERY_CHARS:,} characters; shorten it.", code="query_too_long")
    filters = Filters(
        kinds=_values("kinds", request.kinds),
        adapters=_values("adapters", request.adapters),
        entity_ids=_values("entity_ids", request.entity_ids),
        attributes=_attributes(request.attributes),
    )
    query = clean_text(request.query)
    if not query.strip() and not (filters.kinds or filters.entity_ids or filters.attributes):
        raise Invalid("The query is blank; ask for something, or give kinds, entity_ids or attributes.", code="blank")
    if request.generation is not None or request.explain:
        _require_operator(visibility, "generation" if request.generation is not None else "explain")
    wanted = request.sources or [LOCAL, *known_sources]
    for source in wanted:
        if source != LOCAL and source not in known_sources:
            raise Invalid(
                f"sources names one that is not mounted; there are {', '.join([LOCAL, *sorted(known_sources)])}.",
                code="unknown_source",
            )
    return SearchPlan(
        query=query,
        limit=request.limit,
        eligibility=Eligibility(
            scope=visibility.scope,
            filters=filters,
            include_deprecated=request.include_deprecated,
            as_of=request.as_of,
        ),
        local=LOCAL in wanted,
        live=tuple(source for source in known_sources if source in wanted),
        generation=request.generation,
        as_of=request.as_of,
        include_evidence=request.include_evidence,
        passages=request.passages,
        explain=request.explain,
    )


def _values(name: str, values: list[str] | None) -> tuple[str, ...]:
    if values and len(values) > MAX_FILTER_VALUES:
        raise Invalid(f"{name} has more than {MAX_FILTER_VALUES} values; split the search.", code="filter_too_long")
    return tuple(dict.fromkeys(clean_text(value) for value in values or ()))


def _attributes(values: Mapping[str, Any] | None) -> dict[str, Any]:
    if values and len(values) > MAX_FILTER_VALUES:
        raise Invalid(f"attributes has more than {MAX_FILTER_VALUES} keys; split the search.", code="filter_too_long")
    for value in (values or {}).values():
        if isinstance(value, dict | list):
            raise Invalid("attributes are compared with plain values: text, numbers, true, false or null.")
    found: dict[str, Any] = clean_json(dict(values or {}))
    return found


def _require_operator(visibility: Visibility, field: str) -> None:
    if not visibility.can(Verb.OPERATE):
        raise Forbidden(f"{field} is for operators; the grant memory:operate is missing.", code="capability_missing")
