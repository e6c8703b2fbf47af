"""What was asked and answered, document by document: all that the checker knows. No input or output.

Every text carries a canary, one word that names the document and the revision and stands nowhere else, so that
whatever comes back, from an answer or from a column of a table, tells what it was made from.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

CANARY = re.compile(r"zq(\d{6})r(\d+)q")
TEAM = "team"
"""An audience beside principals: whoever has a grant on the team's tag."""
TEAM_TAG = "memory.space:team"
SEES_ALL = "mia"
"""The principal whose grants cover every tag of a tenant: its mirror."""

Kind = Literal["add", "forget", "purge"]
Audience = frozenset[str]
"""Principals, and TEAM, beside the owner."""


def canary(number: int, revision: int) -> str:
    return f"zq{number:06d}r{revision}q"


def canaries(text: str) -> set[tuple[int, int]]:
    """Document number and revision of every canary in a text."""
    return {(int(number), int(revision)) for number, revision in CANARY.findall(text)}


@dataclass(frozen=True, slots=True)
class Answer:
    """What an add was told."""

    document_id: str
    version_id: str
    status: str


@dataclass(slots=True)
class Write:
    """One intent, however often it was sent. `ended` is None until it is acknowledged, for ever if it never is.

    `sent` counts the requests: of several, an earlier one may still arrive after the answer.
    """

    kind: Kind
    begun: float
    revision: int | None = None
    audience: Audience | None = None
    """None leaves the audience as it is."""
    key: str | None = None
    ended: float | None = None
    sent: int = 0
    answer: Answer | None = None

    def told(self) -> str:
        what = self.kind if self.revision is None else f"{self.kind} r{self.revision}"
        audience = "" if self.audience is None else f" for {sorted(self.audience) or 'the owner'}"
        ended = "no answer" if self.ended is None else f"{self.ended:.2f}"
        answer = "" if self.answer is None else f" {self.answer.version_id} {self.answer.status}"
        return f"{self.begun:.2f}–{ended} {what}{audience}, sent {self.sent}×{answer}"


@dataclass(slots=True)
class Document:
    """One document as its only writer knows it. `closed`: nothing more is sent, since the state is in doubt or over."""

    number: int
    tenant: str
    owner: str
    writes: list[Write] = field(default_factory=list)
    closed: bool = False
    texts: dict[int, str] = field(default_factory=dict)
    sources: tuple["Document", ...] = ()
    """Of a claim: documents that nothing had been erased of when it was made."""

    @property
    def ref(self) -> str:
        return f"doc-{self.number}"

    @property
    def document_id(self) -> str | None:
        return next((write.answer.document_id for write in self.writes if write.answer is not None), None)

    @property
    def erased(self) -> bool:
        """Whether a forget or purge was acknowledged, and nothing sent after it; of a claim, of a source as well."""
        own = bool(self.writes) and self.writes[-1].kind != "add" and self.writes[-1].ended is not None
        return own or any(write.ended is not None for write in self._source_erasures())

    @property
    def in_doubt(self) -> bool:
        return any(write.ended is None for write in [*self.writes, *self._source_erasures()])

    @property
    def revision(self) -> int | None:
        """The revision that the last write left active; None when that is none, or in doubt."""
        if not self.writes or self.in_doubt or self.erased or self.writes[-1].kind != "add":
            return None
        return self.writes[-1].revision

    def settled(self, begun: float, ended: float) -> bool:
        """Whether no write was under way between the two times, of it or of its sources."""
        writes = [*self.writes, *(write for source in self.sources for write in source.writes)]
        return not self.in_doubt and all(
            (write.ended is not None and write.ended <= begun) or write.begun >= ended for write in writes
        )

    def erased_before(self, at: float, revision: int) -> bool:
        """Whether this revision's content was erased, and that acknowledged, by then."""
        gone = False
        for write in self.writes:
            if write.revision == revision:
                gone = False
            elif write.kind != "add" and write.ended is not None and write.ended <= at:
                gone = True
        return gone or any(write.ended is not None and write.ended <= at for write in self._source_erasures())

    def _source_erasures(self) -> list[Write]:
        return [write for source in self.sources for write in source.writes if write.kind != "add"]

    def audiences(self, begun: float, ended: float) -> list[Audience]:
        """Every audience that it may have had at some moment between the two times."""
        certain: Audience = frozenset()
        possible: list[Audience] = []
        for write in self.writes:
            if write.audience is None or write.begun > ended:
                continue
            if write.ended is not None and write.ended <= begun:
                certain = write.audience
                # Sent several times, an earlier request of an older write cannot undo this one: keys see to that.
                possible = []
            else:
                possible.append(write.audience)
        return [certain, *possible]

    def told(self) -> str:
        lines = [f"document {self.number} ({self.document_id}) of {self.owner} in {self.tenant}"]
        lines += [f"  {write.told()}" for write in self.writes]
        for source in self.sources:
            lines += [f"  from {line}" for line in source.told().splitlines()]
        return "\n".join(lines)


@dataclass(slots=True)
class Grants:
    """Who held the team's tag when. Each change is an interval, in the midst of which either may be true."""

    changes: dict[tuple[str, str], list[tuple[float, float, bool]]] = field(default_factory=dict)

    def change(self, tenant: str, principal: str, begun: float, ended: float, held: bool) -> None:
        self.changes.setdefault((tenant, principal), []).append((begun, ended, held))

    def states(self, tenant: str, principal: str, begun: float, ended: float) -> set[bool]:
        """Whether it may have been held, or not held, at some moment between the two times."""
        state, seen = False, set[bool]()
        for change_begun, change_ended, held in self.changes.get((tenant, principal), []):
            if change_ended <= begun:
                state = held
            elif change_begun <= ended:
                seen.add(held)
        return {state, *seen}


@dataclass(slots=True)
class History:
    documents: dict[int, Document] = field(default_factory=dict)
    grants: Grants = field(default_factory=Grants)

    def new(self, tenant: str, owner: str) -> Document:
        document = Document(len(self.documents) + 1, tenant, owner)
        self.documents[document.number] = document
        return document

    def by_id(self) -> dict[str, Document]:
        return {document.document_id: document for document in self if document.document_id is not None}

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self.documents.values()))

    def may_see(self, document: Document, principal: str, begun: float, ended: float) -> bool:
        """Whether the principal may have been allowed to see it at some moment between the two times."""
        if not all(self.may_see(source, principal, begun, ended) for source in document.sources):
            return False
        if principal in (document.owner, SEES_ALL):
            return True
        held = True in self.grants.states(document.tenant, principal, begun, ended)
        return any(_admits(audience, principal, held) for audience in document.audiences(begun, ended))

    def must_see(self, document: Document, principal: str, begun: float, ended: float) -> bool:
        """Whether the principal was allowed to see it at every moment between the two times."""
        if not all(self.must_see(source, principal, begun, ended) for source in document.sources):
            return False
        if principal in (document.owner, SEES_ALL):
            return True
        held = False not in self.grants.states(document.tenant, principal, begun, ended)
        return all(_admits(audience, principal, held) for audience in document.audiences(begun, ended))


def _admits(audience: Iterable[str], principal: str, holds_team: bool) -> bool:
    return principal in audience or (holds_team and TEAM in audience)
