"""Access tags: the names under which a document is shared. Never a bare word, never a glob.

A caller may write reserved tags himself, since they say no more than `share` would, and whoever reads a document's
tags must be able to send them back or copy them to a claim: `memory.owner:<p>` shares with p, `memory.doc:<id>` with
the peers of that document, `memory.tenant:<own>` with the tenant. Only another tenant's tag is refused: nobody there
would ever see the document.
"""

import re
from collections.abc import Iterable, Sequence

from memory_plane.contracts.errors import FieldError, Invalid
from memory_plane.contracts.validation import refusal
from memory_plane.contracts.wire import Share
from memory_plane.core.text import clean_text, is_blank, is_storable

MAX_TAGS = 64
MAX_TAG_CHARS = 256

_OWNER = "memory.owner:"
_TENANT = "memory.tenant:"
_DOCUMENT = "memory.doc:"
_NAMESPACED = re.compile(r"[^\s:]+:\S")


def owner_tag(principal_id: str) -> str:
    return _OWNER + principal_id


def tenant_tag(tenant_id: str) -> str:
    return _TENANT + tenant_id


def document_tag(document_id: str) -> str:
    return _DOCUMENT + document_id


def written_tags(
    owner: str,
    tenant_id: str,
    access_tags: Sequence[str] = (),
    share: Share | None = None,
    document_id: str | None = None,
) -> list[str]:
    """The tags a document carries: its creator's own, then those asked for, each once, in the order given.

    `owner` is the document's creator; `document_id` is given where peers get share rules, and adds the tag for them.
    Invalid, with every refused tag at once, when one is not `<namespace>:<id>`.
    """
    wanted = share or Share()
    refuse_bad_tags(tenant_id, access_tags, share)
    peers = share_principals(owner, share)
    tags = [
        owner_tag(owner),
        *_trimmed(access_tags),
        *([tenant_tag(tenant_id)] if wanted.tenant else []),
        *(owner_tag(peer) for peer in peers),
        *_trimmed(wanted.tags),
        *([document_tag(document_id)] if peers and document_id else []),
    ]
    return list(dict.fromkeys(tags))


def share_principals(owner: str, share: Share | None) -> list[str]:
    """The peers of `share.principals`, each once; never the owner, who needs no rule to see his own."""
    peers = _trimmed(share.principals) if share else []
    return [peer for peer in dict.fromkeys(peers) if peer != owner]


def split_audience(
    source_tags: Iterable[str], proposed: Iterable[str], *, writer: str | None = None
) -> tuple[list[str], list[str]]:
    """Of a claim's `proposed` tags those its sources carry (or the writer's own), and those that need approval.

    `source_tags` are those common to all sources: `common_tags`.
    """
    allowed_tags = set(source_tags)
    if writer is not None:
        allowed_tags.add(owner_tag(writer))
    wanted = list(dict.fromkeys(proposed))
    return [tag for tag in wanted if tag in allowed_tags], [tag for tag in wanted if tag not in allowed_tags]


def common_tags(sources: Iterable[Iterable[str]]) -> list[str]:
    """The tags that every source carries, in the order of the first."""
    first, *others = [list(tags) for tags in sources] or [[]]
    shared = set(first).intersection(*others)
    return [tag for tag in dict.fromkeys(first) if tag in shared]


def refuse_bad_tags(tenant_id: str, access_tags: Sequence[str] = (), share: Share | None = None) -> None:
    """Invalid, naming every refused tag and peer, when there is one."""
    problems = tag_problems(tenant_id, access_tags, share)
    if problems:
        raise Invalid(refusal(problems).detail, code="access_tag", errors=problems)


def tag_problems(tenant_id: str, access_tags: Sequence[str] = (), share: Share | None = None) -> list[FieldError]:
    """Everything that is wrong with the tags and share of an add; fields are named, values are not."""
    wanted = share or Share()
    fields = (
        ("access_tags", _numbered(access_tags)),
        ("share.tags", _numbered(wanted.tags)),
    )
    found = [
        FieldError(f"{field}.{index}", problem)
        for field, tags in fields
        for index, tag in tags
        if (problem := _tag_problem(tag, tenant_id))
    ]
    found += [
        FieldError(f"share.principals.{index}", problem)
        for index, peer in _numbered(wanted.principals)
        if (problem := _principal_problem(peer))
    ]
    total = sum(len(_trimmed(values)) for values in (access_tags, wanted.tags, wanted.principals))
    if total > MAX_TAGS:
        found.append(FieldError("access_tags", f"must be at most {MAX_TAGS}, those of share included"))
    return found


def _tag_problem(tag: str, tenant_id: str) -> str | None:
    if len(tag) > MAX_TAG_CHARS:
        return f"must have at most {MAX_TAG_CHARS} characters"
    if not _is_plain(tag):
        return "must not hold characters that cannot be printed"
    if "*" in tag:
        return "must be a name without '*'; patterns belong in grant rules"
    if not _NAMESPACED.match(tag):
        return "must be '<namespace>:<id>', such as memory.space:eng; a bare word would be shared with everybody"
    if tag.startswith(_TENANT) and tag != tenant_tag(tenant_id):
        return "must name your own tenant; use share.tenant"
    return None


def _principal_problem(peer: str) -> str | None:
    if len(owner_tag(peer)) > MAX_TAG_CHARS:
        return f"must have at most {MAX_TAG_CHARS - len(_OWNER)} characters"
    if "*" in peer or not _is_plain(peer):
        return "must be the id of one principal, without '*' and characters that cannot be printed"
    return None


def _is_plain(value: str) -> bool:
    return is_storable(value) and value.isprintable()


def _trimmed(values: Iterable[str]) -> list[str]:
    """As they are compared: NFC, like the ids of principals."""
    return [clean_text(value).strip() for value in values if not is_blank(value)]


def _numbered(values: Iterable[str]) -> list[tuple[int, str]]:
    """With their places in the request; blank ones, which are ignored, left out."""
    return [(index, value.strip()) for index, value in enumerate(values) if not is_blank(value)]
