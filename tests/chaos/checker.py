"""What must be true of every answer, and of what is left in the end. Pure: histories and rows in, violations out."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.chaos.history import Answer, Document, History, canaries

TOLD_TO_ALL = frozenset({"retagged", "forgotten", "purged"})
INCOMPLETE = frozenset({"page_incomplete", "lexical_unavailable"})
"""What a search says when it may lack hits that it should have."""
AFTER_RETRY = frozenset({409, 429, 503})


@dataclass(frozen=True, slots=True)
class Violation:
    """`rule` is one of RULES; `about` the history of the document, where one is concerned."""

    rule: str
    what: str
    about: str = ""


RULES = {
    "lost": "what was acknowledged is there, and is found by who may see it",
    "doubled": "one document a reference, one version a revision, one event a version",
    "leaked": "nobody sees what is not his to see; tenants see nothing of each other",
    "resurrected": "what was forgotten or purged never comes back, in an answer or in a table",
    "torn": "a version is wholly there, with its raw capture, chunks, derivation and event, or wholly absent",
    "phantom": "nothing is there that nobody asked for",
    "unembedded": "in the end everything that serves has its vectors, without a hand",
    "feed": "positions have no gap; a follower gets every event once, in order, and none is taken back",
    "replay": "a key that was answered answers the same again",
    "refusal": "a fault is a refusal with Retry-After or no answer, never a 500 or another refusal",
    "stuck": "operators' runs and cutovers come to their end, parts stay up by themselves",
}


@dataclass(frozen=True, slots=True)
class Read:
    """One answer to a reader: all of its text, and the documents that it names."""

    tenant: str
    principal: str
    verb: str
    begun: float
    ended: float
    text: str
    document_ids: Sequence[str] = ()
    degraded: Collection[str] = ()


@dataclass(slots=True)
class Checker:
    history: History
    violations: list[Violation] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)

    def violated(self, rule: str, what: str, document: Document | None = None) -> None:
        assert rule in RULES, rule
        self.violations.append(Violation(rule, what, "" if document is None else document.told()))

    # Answers as they come

    def answered(self, verb: str, status: int, expected: Collection[int], retry_after: str | None, code: str) -> None:
        """The status of any answer; `expected` beside 503 and 429."""
        self.checked["answers"] += 1
        if status in AFTER_RETRY:
            if retry_after is None:
                self.violated("refusal", f"{verb} was answered {status} ({code}) without Retry-After")
            if status == 409 and 409 not in expected and code != "idempotency_key_in_use":
                self.violated("refusal", f"{verb} was answered 409 ({code})")
        elif status not in expected:
            self.violated("refusal", f"{verb} was answered {status} ({code})")

    def saw(self, read: Read) -> None:
        """Whatever an answer says is the reader's to see, and is not gone."""
        self.checked["reads"] += 1
        who = f"{read.verb} of {read.principal} in {read.tenant}, {read.begun:.2f}–{read.ended:.2f},"
        for number, revision in canaries(read.text):
            document = self.history.documents.get(number)
            if document is None or not any(w.revision == revision for w in document.writes):
                self.violated("phantom", f"{who} told of revision {revision} of {number}, which was never sent")
            elif document.tenant != read.tenant:
                self.violated("leaked", f"{who} told of another tenant's document", document)
            elif not self.history.may_see(document, read.principal, read.begun, read.ended):
                self.violated("leaked", f"{who} told of what is not the reader's to see", document)
            elif document.erased_before(read.begun, revision):
                self.violated("resurrected", f"{who} told of r{revision}, erased before", document)

    def searched(self, read: Read, document: Document) -> bool:
        """A search for the document's own word finds it, where it stood still and is the reader's to see. False where
        it should have and did not."""
        self.saw(read)
        if document.revision is None or not document.settled(read.begun, read.ended):
            return True
        if document.tenant != read.tenant or INCOMPLETE & set(read.degraded):
            return True
        if not self.history.must_see(document, read.principal, read.begun, read.ended):
            return True
        self.checked["searches that must find"] += 1
        if document.document_id not in read.document_ids:
            self.violated(
                "lost",
                f"search of {read.principal}, {read.begun:.2f}–{read.ended:.2f}, did not find r{document.revision} "
                f"among {len(read.document_ids)} hits, degraded {list(read.degraded)}",
                document,
            )
            return False
        return True

    def got(self, read: Read, document: Document, status: int, text: str | None) -> None:
        """A document read by its id: the text of its last revision, where it stood still."""
        self.saw(read)
        same_tenant = document.tenant == read.tenant
        if not same_tenant or not self.history.may_see(document, read.principal, read.begun, read.ended):
            if status != 404:
                self.violated("leaked", f"get of {read.principal} in {read.tenant} was {status}, not 404", document)
            return
        if document.revision is None or not document.settled(read.begun, read.ended):
            return
        if not self.history.must_see(document, read.principal, read.begun, read.ended):
            return
        self.checked["documents read whole"] += 1
        if status != 200 or text != document.texts[document.revision]:
            self.violated(
                "lost",
                f"get of {read.principal} at {read.begun:.2f} was {status}, another text than was sent",
                document,
            )

    def walked(self, read: Read) -> None:
        """No document twice in one walk through a list."""
        self.saw(read)
        twice = [each for each, times in Counter(read.document_ids).items() if times > 1]
        if twice:
            self.violated("doubled", f"{read.verb} of {read.principal} in {read.tenant} has {twice[0]} twice")

    def replayed(self, document: Document, first: Answer, again: Answer) -> None:
        self.checked["replays"] += 1
        if first != again:
            self.violated("replay", f"a key answered {first} and then {again}", document)


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version with all that hangs on it, as the database has it in the end."""

    tenant: str
    ref: str
    document_id: str
    version_id: str
    version: int
    status: str
    title: str
    has_raw: bool
    expected_chunks: int | None
    """By the live generation's derivation; None where it has none."""
    chunks: int
    vectors: int
    embed_state: str | None


@dataclass(frozen=True, slots=True)
class EventRow:
    position: int
    kind: str
    document_id: str
    version_id: str | None


@dataclass(frozen=True, slots=True)
class EndState:
    """The database once everything has come to rest. `words`: table.column → canaries that stand in it."""

    versions: Sequence[VersionRow]
    events: Mapping[str, Sequence[EventRow]]
    counters: Mapping[str, int]
    words: Mapping[str, set[tuple[int, int]]]
    empty_documents: Sequence[str] = ()
    """References of documents without a version."""


def check_end(checker: Checker, end: EndState) -> None:
    """Everything that was acknowledged against everything there is."""
    rows = defaultdict[tuple[str, str], list[VersionRow]](list)
    for row in end.versions:
        rows[row.tenant, row.ref].append(row)
    known = {(document.tenant, document.ref): document for document in checker.history}
    for place in rows.keys() - known.keys():
        checker.violated("phantom", f"{place[1]} in {place[0]} was never sent")
    for ref in end.empty_documents:
        checker.violated("torn", f"{ref} is a document without a version")
    for place, document in known.items():
        _check_document(checker, document, sorted(rows[place], key=lambda row: row.version))
    _check_events(checker, end)
    for column, words in end.words.items():
        for number, revision in words:
            document = checker.history.documents[number]
            if document.erased_before(float("inf"), revision):
                checker.violated("resurrected", f"{column} still holds r{revision}", document)


def _check_document(checker: Checker, document: Document, rows: Sequence[VersionRow]) -> None:
    checker.checked["documents at the end"] += 1
    if len({row.document_id for row in rows}) > 1:
        checker.violated("doubled", "its reference is of several documents", document)
    if [row.version for row in rows] != list(range(1, len(rows) + 1)):
        checker.violated("lost", f"its versions are {[row.version for row in rows]}", document)
    purged = any(write.kind == "purge" for write in document.writes)
    ids = {row.version_id for row in rows}
    for write in document.writes:
        if write.answer is not None and write.answer.version_id not in ids and not purged:
            checker.violated("lost", f"acknowledged version {write.answer.version_id} is not there", document)
    _check_revisions(checker, document, rows)
    for row in rows:
        if row.status != "tombstoned":
            _check_whole(checker, document, row)
    _check_standing(checker, document, rows)


def _check_revisions(checker: Checker, document: Document, rows: Sequence[VersionRow]) -> None:
    """Each acknowledged revision once, each that got no answer at most once."""
    acknowledged = {w.answer.version_id for w in document.writes if w.answer is not None}
    unanswered = sum(w.kind == "add" and w.ended is None for w in document.writes)
    extra = [row for row in rows if row.version_id not in acknowledged]
    if len(extra) > unanswered:
        checker.violated("doubled", f"{len(extra)} versions more than were acknowledged", document)
    told = Counter(found for row in rows for found in canaries(row.title))
    for (number, revision), times in told.items():
        if number != document.number or not any(w.revision == revision for w in document.writes):
            checker.violated("phantom", f"a version of it is titled for {number} r{revision}", document)
        if times > 1:
            checker.violated("doubled", f"r{revision} is {times} versions", document)


def _check_whole(checker: Checker, document: Document, row: VersionRow) -> None:
    derived = row.expected_chunks is not None
    # A generation that was built later holds what was active then: superseded versions have no part in it.
    owed = row.status == "active" or derived
    if not row.has_raw or row.chunks != (row.expected_chunks or 0) or (owed and not row.chunks):
        checker.violated(
            "torn",
            f"version {row.version}: raw capture {row.has_raw}, {row.chunks} chunks of {row.expected_chunks}",
            document,
        )
    elif owed and (row.embed_state != "embedded" or row.vectors < row.chunks):
        checker.violated(
            "unembedded",
            f"version {row.version} is {row.embed_state}, {row.vectors} vectors of {row.chunks} chunks",
            document,
        )


def _check_standing(checker: Checker, document: Document, rows: Sequence[VersionRow]) -> None:
    """The last write decides how it stands, where it is known how that ended."""
    active = [row for row in rows if row.status == "active"]
    if len(active) > 1:
        checker.violated("doubled", f"{len(active)} versions are active", document)
    if document.erased:
        left = [row.version_id for row in rows if row.status != "tombstoned"]
        if left or (rows and document.writes[-1].kind == "purge"):
            checker.violated("resurrected", f"it was erased, and {left or 'its rows'} are there", document)
    elif document.revision is not None:
        found = {revision for row in active for _, revision in canaries(row.title)}
        if found != {document.revision}:
            checker.violated("lost", f"r{document.revision} should be active, and is {found or 'none'}", document)


def _check_events(checker: Checker, end: EndState) -> None:
    for tenant, events in end.events.items():
        positions = [event.position for event in events]
        if positions != list(range(1, len(positions) + 1)):
            checker.violated("feed", f"positions of {tenant} have a gap")
        if end.counters.get(tenant) != len(positions):
            checker.violated("feed", f"{tenant} has {len(positions)} events and counts {end.counters.get(tenant)}")
        captured = Counter(event.version_id for event in events if event.kind == "captured")
        for version_id, times in captured.items():
            if times > 1:
                checker.violated("doubled", f"version {version_id} was told as captured {times} times")
        for row in end.versions:
            if row.tenant == tenant and row.version_id not in captured:
                checker.violated("torn", f"version {row.version_id} has no event")


def check_follower(checker: Checker, name: str, seen: Sequence[EventRow], events: Sequence[EventRow]) -> None:
    """A follower that may see everything, against the events there are: in order, each once, and all of them but
    for what was erased before it came to read."""
    checker.checked["events followed"] += len(seen)
    positions = [event.position for event in seen]
    if any(later <= earlier for earlier, later in pairwise(positions)):
        checker.violated("feed", f"{name} was given positions out of order or twice")
    there = {event.position: event for event in events}
    for event in seen:
        if there.get(event.position) != event:
            checker.violated("feed", f"{name} was told {event}, and there is {there.get(event.position)}")
    erased_at: dict[str, int] = {}
    for event in events:
        if event.kind in ("forgotten", "purged"):
            erased_at[event.document_id] = event.position
    for position in there.keys() - set(positions):
        event = there[position]
        if event.kind in TOLD_TO_ALL or erased_at.get(event.document_id, 0) < position:
            checker.violated("feed", f"{name} was never told {event}")
