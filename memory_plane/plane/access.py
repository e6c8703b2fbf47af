"""Who may use which verb, and which loaded rows a caller sees: the last word, whatever a statement has brought."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from memory_plane.contracts.enums import Verb, VersionStatus
from memory_plane.contracts.errors import Forbidden
from memory_plane.core.caller import Caller
from memory_plane.core.conditions import SHIPPED_CONDITIONS, ConditionRegistry
from memory_plane.core.visibility import SEARCH, Visibility
from memory_plane.plane.ports import GrantStore
from memory_plane.store import lineage
from memory_plane.store.database import Connection, Pool
from memory_plane.store.grants import PostgresGrantStore
from memory_plane.store.lineage import LineageRow
from memory_plane.telemetry import metrics

_log = logging.getLogger(__name__)
_PROBLEMS_REMEMBERED = 1000


class Access:
    """Builds the visibility of a caller, once a request. Without a grant store (library use only) no verb is refused
    and each document is its creator's alone."""

    def __init__(self, grant_store: GrantStore | None, registry: ConditionRegistry | None = SHIPPED_CONDITIONS) -> None:
        self._grant_store = grant_store
        self._registry = registry
        self._problems_told: set[tuple[str, str]] = set()

    @property
    def grant_store(self) -> GrantStore | None:
        return self._grant_store

    def writes_grants_in(self, pool: Pool) -> bool:
        """Whether grants live in the database of this pool, so that a capture's transaction can write them."""
        return isinstance(self._grant_store, PostgresGrantStore) and self._grant_store.is_on(pool)

    async def visibility(self, caller: Caller) -> Visibility:
        rules = None
        if self._grant_store is not None:
            rules = await self._grant_store.collect_grants(caller.principal_id, caller.tenant_id)
        return Visibility(caller, rules, datetime.now(UTC), self._registry, self._tell)

    def require(self, visibility: Visibility, verb: Verb) -> None:
        """Raises Forbidden that names the missing grant."""
        allowed = visibility.can(verb)
        metrics.VERBS.labels(verb.value, "allowed" if allowed else "refused").inc()
        if not allowed:
            raise Forbidden(
                f"The grant memory:{verb.value} is missing; an operator can give it with `memory grant add "
                f"--tenant T --principal P --resource memory --action {verb.value}`.",
                code="capability_missing",
            )

    def _tell(self, rule_id: str, problem: str) -> None:
        """Once for each rule, not once for each request it would have decided."""
        if (rule_id, problem) in self._problems_told:
            return
        if len(self._problems_told) >= _PROBLEMS_REMEMBERED:
            self._problems_told.clear()
        self._problems_told.add((rule_id, problem))
        _log.error("grant rule %s does not apply: %s", rule_id, problem)


async def visible_versions(conn: Connection, visibility: Visibility, version_ids: Iterable[str]) -> set[str]:
    """Which of these versions the caller sees: the document's creator and tags, and, for a claim, each of its sources,
    as they are now. A tombstoned version is seen by its document's creator alone. Unknown ids are not seen."""
    wanted = set(version_ids)
    if not wanted:
        return set()
    tenant = visibility.caller.tenant_id
    rows = await lineage.with_sources(conn, tenant, wanted)
    claims = [row.version_id for row in rows.values() if row.sources]
    receipts = await lineage.receipts(conn, tenant, claims) if claims else {}
    seen = _seen(visibility, rows, receipts)
    return {version_id for version_id in wanted if version_id in seen or _own_tombstone(visibility, rows, version_id)}


async def visible_documents(conn: Connection, visibility: Visibility, document_ids: Iterable[str]) -> set[str]:
    """Which of these documents the caller sees, judged by the current version: the active one, else the newest that
    is not tombstoned, else the newest. What shows another version of it asks `visible_versions`."""
    current = await lineage.current_versions(conn, visibility.caller.tenant_id, set(document_ids))
    seen = await visible_versions(conn, visibility, current.values())
    return {document_id for document_id, version_id in current.items() if version_id in seen}


def _own_tombstone(visibility: Visibility, rows: Mapping[str, LineageRow], version_id: str) -> bool:
    row = rows.get(version_id)
    return row is not None and row.status == VersionStatus.TOMBSTONED and row.creator == visibility.caller.principal_id


def _seen(
    visibility: Visibility, rows: Mapping[str, LineageRow], receipts: Mapping[tuple[str, str], Sequence[str]]
) -> set[str]:
    """Grows from versions without sources towards claims upon claims; what waits for itself is never reached."""
    undecided = {
        row.version_id: row
        for row in rows.values()
        if row.status != VersionStatus.TOMBSTONED and visibility.sees(row.creator, row.access_tags)
    }
    seen: set[str] = set()
    while True:
        grown = {
            version_id
            for version_id, row in undecided.items()
            if all(
                source in seen or (_is_first_hand(rows, source) and _receipt_stands(visibility, row, source, receipts))
                for source in row.sources
            )
        }
        if not grown:
            return seen
        seen |= grown
        for version_id in grown:
            del undecided[version_id]


def _is_first_hand(rows: Mapping[str, LineageRow], source: str) -> bool:
    """Whether its owner's word is enough: who made a claim must not open what it was made from."""
    row = rows.get(source)
    return row is not None and not row.sources and row.status != VersionStatus.TOMBSTONED


def _receipt_stands(
    visibility: Visibility, row: LineageRow, source: str, receipts: Mapping[tuple[str, str], Sequence[str]]
) -> bool:
    """Whether the source's owner has approved a tag, still on the claim, that admits this reader."""
    approved = receipts.get((row.version_id, source), ())
    return any(tag in row.access_tags and visibility.allows(tag, SEARCH) for tag in approved)
