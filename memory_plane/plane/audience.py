"""Which tags a capture leaves on its document, and which peers get share rules."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_plane.contracts.errors import Invalid
from memory_plane.contracts.wire import Share
from memory_plane.core.access_tags import (
    document_tag,
    owner_tag,
    share_principals,
    split_audience,
    written_tags,
)
from memory_plane.plane.references import References


@dataclass(frozen=True, slots=True)
class WantedAudience:
    """What an add says of its audience. Both None: leave it as it is."""

    access_tags: Sequence[str] | None = None
    share: Share | None = None
    request_widening: bool = False

    @property
    def is_given(self) -> bool:
        return self.access_tags is not None or self.share is not None


@dataclass(frozen=True, slots=True)
class Audience:
    """`peers` get rules on the document's own tag, and nobody else keeps one; None leaves all rules as they are.
    `unapproved` are tags that a claim's sources do not carry."""

    tags: list[str]
    peers: list[str] | None = None
    unapproved: Sequence[str] = ()


def named_owners(tags: Iterable[str]) -> set[str]:
    """The principals whose own tags are among these."""
    prefix = owner_tag("")
    return {tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)}


def decide_audience(
    wanted: WantedAudience,
    *,
    tenant_id: str,
    document_id: str,
    owner: str,
    current: Sequence[str] | None,
    references: References,
) -> Audience:
    """`owner` is the document's creator; `current` are the tags of a document that exists and was not forgotten.

    Raises Invalid for malformed tags, and `audience_widening` for a claim whose tags go beyond its sources'.
    """
    if wanted.is_given:
        return _given(wanted, tenant_id, document_id, owner, references)
    if not references.is_claim:
        return Audience([owner_tag(owner)] if current is None else list(current))
    common = references.common_tags()
    if current is None:
        return Audience(list(dict.fromkeys([owner_tag(owner), *common])))
    kept = {owner_tag(owner), document_tag(document_id), *common}
    return Audience([tag for tag in current if tag in kept])


def _given(wanted: WantedAudience, tenant_id: str, document_id: str, owner: str, references: References) -> Audience:
    own = document_tag(document_id)
    tags = written_tags(owner, tenant_id, wanted.access_tags or (), wanted.share, document_id)
    peers = share_principals(owner, wanted.share)
    if not references.is_claim:
        return Audience(tags, peers)
    allowed, unapproved = split_audience(references.common_tags(), [tag for tag in tags if tag != own], writer=owner)
    if unapproved and not wanted.request_widening:
        raise Invalid(
            f"{len(unapproved)} of the tags go beyond those common to the claim's sources; leave them out, or set "
            "request_widening to ask the owners of the sources.",
            code="audience_widening",
        )
    peers = [peer for peer in peers if owner_tag(peer) in allowed]
    return Audience(allowed + ([own] if peers else []), peers, unapproved)
