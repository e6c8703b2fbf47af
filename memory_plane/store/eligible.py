"""Which versions may answer a search at all, as SQL over the aliases `v` (version) and `d` (document).

Status, time and the request's filters are exact here; visibility is a superset, and the authority judges what comes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_plane.core.visibility import VisibilityScope
from memory_plane.store.versions import expired
from memory_plane.store.visibility import predicate


@dataclass(frozen=True, slots=True)
class Filters:
    """Empty means no filter. `attributes` must all be equal."""

    kinds: Sequence[str] = ()
    adapters: Sequence[str] = ()
    entity_ids: Sequence[str] = ()
    attributes: Mapping[str, Any] | None = None

    @property
    def any(self) -> bool:
        return bool(self.kinds or self.adapters or self.entity_ids or self.attributes)


@dataclass(frozen=True, slots=True)
class Eligibility:
    scope: VisibilityScope
    filters: Filters = Filters()
    include_deprecated: bool = False
    as_of: datetime | None = None

    @property
    def narrow(self) -> bool:
        """Whether it may leave little of a tenant, so that it is worth asking how much first."""
        return self.filters.any or not self.scope.everything

    def sql(self, params: list[object]) -> str:
        """The conjunction; its values are appended to `params` ($n is then len(params))."""
        conditions = [_at(self.as_of, self.include_deprecated, params), predicate(self.scope, params)]
        if self.filters.kinds:
            conditions.append(f"v.kind = ANY ({_add(params, list(self.filters.kinds))}::text[])")
        if self.filters.adapters:
            conditions.append(f"d.adapter = ANY ({_add(params, list(self.filters.adapters))}::text[])")
        if self.filters.attributes:
            # Containment compares values of one type and never casts: a row with "N/A" for a number is only unequal.
            conditions.append(f"v.attributes @> {_add(params, dict(self.filters.attributes))}::jsonb")
        if self.filters.entity_ids:
            wanted = _add(params, list(self.filters.entity_ids))
            conditions.append(
                "EXISTS (SELECT FROM memory.edge e WHERE e.tenant_id = d.tenant_id AND e.from_id IN (d.id, v.id) "
                f"AND e.to_type = 'entity' AND e.to_id = ANY ({wanted}::text[]))"
            )
        return " AND ".join(condition for condition in conditions if condition != "true")


def _at(as_of: datetime | None, include_deprecated: bool, params: list[object]) -> str:
    if as_of is not None:
        moment = _add(params, as_of)
        withdrawn = "" if include_deprecated else f" AND NOT (v.status = 'deprecated' AND v.status_at <= {moment})"
        return (
            f"v.status <> 'tombstoned' AND NOT {expired()} AND v.ingested_at <= {moment}{withdrawn} "
            f"AND (v.valid_from IS NULL OR v.valid_from <= {moment}) "
            f"AND (v.valid_until IS NULL OR v.valid_until > {moment}) "
            "AND NOT EXISTS (SELECT FROM memory.version w WHERE w.document_id = v.document_id "
            f"AND w.version > v.version AND w.ingested_at <= {moment})"
        )
    if not include_deprecated:
        return f"v.status = 'active' AND NOT {expired()}"
    # A withdrawn version never competes with one that came after it.
    return (
        "(v.status = 'active' OR (v.status = 'deprecated' AND NOT EXISTS (SELECT FROM memory.version w "
        "WHERE w.document_id = v.document_id AND w.version > v.version AND w.status <> 'tombstoned')))"
    )


def _add(params: list[object], value: object) -> str:
    params.append(value)
    return f"${len(params)}"
