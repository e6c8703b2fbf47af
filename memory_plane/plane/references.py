"""What a capture refers to, checked under lock: the sources of a claim, what it supports or contradicts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory_plane.contracts.enums import EdgeRel
from memory_plane.contracts.errors import FieldError, Invalid
from memory_plane.core.access_tags import common_tags
from memory_plane.core.planning import EdgeHint
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import visible_versions
from memory_plane.store import lineage
from memory_plane.store import sources as store
from memory_plane.store.database import Connection
from memory_plane.store.locks import lock_with_sources
from memory_plane.store.sources import Target


@dataclass(frozen=True, slots=True)
class References:
    """`tags_by_source` has the tags of each source's document; empty for what is no claim."""

    locked_documents: frozenset[str] = frozenset()
    tags_by_source: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_claim(self) -> bool:
        return bool(self.tags_by_source)

    def common_tags(self) -> list[str]:
        """The audience of a claim: what all its sources carry."""
        return common_tags(self.tags_by_source.values())

    def with_approved(self, approved: Mapping[str, Sequence[str]]) -> "References":
        """As if each source carried what its owner has approved beyond its own tags."""
        tags = {source: [*own, *approved.get(source, ())] for source, own in self.tags_by_source.items()}
        return replace(self, tags_by_source=tags)


NO_REFERENCES = References()


async def lock_references(
    conn: Connection, visibility: Visibility, document_id: str | None, edges: Sequence[EdgeHint]
) -> References:
    """Lock the referred documents against change, and the capture's own, if there is one, for it, all in order of id.

    Raises Invalid, `source_gone` for derived_from and `target_gone` for the others, for what does not exist, is
    tombstoned, or is not the caller's to see: these are not told apart.
    """
    if not edges:
        return NO_REFERENCES
    tenant_id = visibility.caller.tenant_id
    targets = await store.targets(conn, tenant_id, {edge.to_id for edge in edges})
    documents = {target.document_id for target in targets.values() if target.document_id is not None}
    locked = await lock_with_sources(conn, tenant_id, document_id, documents)
    versions = await _versions(conn, tenant_id, targets)
    found = await store.referred(conn, tenant_id, set(versions.values()))
    seen = await visible_versions(conn, visibility, found)
    usable = {id_ for id_, version in found.items() if id_ in seen and not version.is_tombstoned}
    entities = {id_ for id_, target in targets.items() if target.document_id is None}
    known = entities | {id_ for id_, version_id in versions.items() if version_id in usable}
    for rel, code in (
        (EdgeRel.DERIVED_FROM, "source_gone"),
        (EdgeRel.SUPPORTS, "target_gone"),
        (EdgeRel.CONTRADICTS, "target_gone"),
    ):
        allowed = usable if rel == EdgeRel.DERIVED_FROM else known
        _require(rel, [edge.to_id for edge in edges if edge.rel == rel], allowed, code)
    sources = [edge.to_id for edge in edges if edge.rel == EdgeRel.DERIVED_FROM]
    return References(frozenset(locked), {id_: found[id_].access_tags for id_ in sources})


async def _versions(conn: Connection, tenant_id: str, targets: Mapping[str, Target]) -> dict[str, str]:
    """By target the version that decides about it: its own, or for a document the current one."""
    whole = [target.document_id for target in targets.values() if target.document_id and target.version_id is None]
    current = await lineage.current_versions(conn, tenant_id, whole) if whole else {}
    decisive = {id_: target.version_id or current.get(target.document_id or "") for id_, target in targets.items()}
    return {id_: version_id for id_, version_id in decisive.items() if version_id is not None}


def _require(rel: EdgeRel, ids: Sequence[str], usable: Collection[str], code: str) -> None:
    errors = [
        FieldError(f"{rel.value}.{place}", "names nothing that exists, is not forgotten, and is yours to see")
        for place, id_ in enumerate(ids)
        if id_ not in usable
    ]
    if errors:
        raise Invalid(
            f"{rel.value} must name what you can see; {len(errors)} of {len(ids)} ids cannot be used.",
            code=code,
            errors=errors,
        )
