"""The checker can fail: for each rule a history that breaks it, and the same history whole, which breaks none."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.checker import (
    RULES,
    Checker,
    EndState,
    EventRow,
    Read,
    VersionRow,
    check_end,
    check_follower,
)
from tests.chaos.history import TEAM, Answer, Audience, Document, History, Write, canary

ANSWER = Answer("kdoc_1", "kver_1", "captured")


def added(document: Document, at: float, revision: int = 1, audience: Audience | None = frozenset()) -> Write:
    """An acknowledged add."""
    version = f"kver_{document.number}_{revision}"
    write = Write("add", at, revision, audience, ended=at + 1, sent=1)
    write.answer = Answer(f"kdoc_{document.number}", version, "captured")
    document.texts[revision] = f"{canary(document.number, revision)} text"
    document.writes.append(write)
    return write


def erased(document: Document, at: float) -> None:
    document.writes.append(Write("forget", at, audience=frozenset(), ended=at + 1, sent=1))


@pytest.fixture
def checker() -> Checker:
    """Two tenants. Document 1 is private to ann, 2 is for the team, 3 is of another tenant, 4 is forgotten."""
    history = History()
    checker = Checker(history)
    for tenant, audience in (("north", frozenset()), ("north", frozenset({TEAM})), ("south", frozenset[str]())):
        added(history.new(tenant, "ann"), 1, audience=audience)
    gone = history.new("north", "ann")
    added(gone, 1)
    erased(gone, 5)
    history.grants.change("north", "bob", 0, 1, True)
    history.grants.change("north", "bob", 20, 21, False)
    return checker


def read(principal: str, at: float, *numbers: int, tenant: str = "north", ids: tuple[str, ...] = ()) -> Read:
    """A reader's search that came back with these documents' canaries."""
    text = " ".join(canary(number, 1) for number in numbers)
    return Read(tenant, principal, "search", at, at + 0.5, text, ids)


def rules(checker: Checker) -> set[str]:
    return {violation.rule for violation in checker.violations}


def test_what_a_reader_may_see_is_no_violation(checker: Checker) -> None:
    checker.saw(read("ann", 10, 1, 2))
    checker.saw(read("bob", 10, 2))
    checker.saw(read("bob", 20.2, 2))
    checker.saw(read("mia", 10, 1, 2))
    checker.saw(read("ann", 5.5, 4))
    assert checker.violations == []


@pytest.mark.parametrize(
    ("found", "rule"),
    [
        (read("bob", 10, 1), "leaked"),
        (read("cat", 10, 2), "leaked"),
        (read("bob", 22, 2), "leaked"),
        (read("mia", 10, 1, tenant="south"), "leaked"),
        (read("ann", 7, 4), "resurrected"),
        (read("ann", 7, 99), "phantom"),
    ],
)
def test_an_answer_that_tells_too_much_is_one(checker: Checker, found: Read, rule: str) -> None:
    checker.saw(found)
    assert rules(checker) == {rule}


def test_narrowing_an_audience_counts_from_its_answer_on(checker: Checker) -> None:
    team = checker.history.documents[2]
    team.writes.append(Write("add", 12, 1, frozenset(), ended=13, sent=1))
    checker.saw(read("bob", 12.4, 2))
    assert checker.violations == []
    checker.saw(read("bob", 13.1, 2))
    assert rules(checker) == {"leaked"}


def test_a_claim_is_seen_with_its_sources_and_gone_with_either(checker: Checker) -> None:
    team, private = checker.history.documents[2], checker.history.documents[1]
    claim = checker.history.new("north", "ann")
    claim.sources = (team, private)
    added(claim, 3, audience=frozenset({TEAM}))
    checker.saw(read("ann", 10, 5))
    assert checker.violations == []
    checker.saw(read("bob", 10, 5))
    assert rules(checker) == {"leaked"}, "bob sees one source of two"
    checker.violations.clear()
    erased(team, 11)
    checker.saw(read("ann", 11.5, 5))
    assert checker.violations == []
    checker.saw(read("ann", 12.5, 5))
    assert rules(checker) == {"resurrected"}


def test_a_document_that_stood_still_must_be_found(checker: Checker) -> None:
    team = checker.history.documents[2]
    checker.searched(replace(read("bob", 10, 2), document_ids=["kdoc_2"]), team)
    checker.searched(read("cat", 10), team)
    checker.searched(read("bob", 20.2), team)
    checker.searched(replace(read("bob", 10), degraded=["page_incomplete"]), team)
    assert checker.violations == []
    checker.searched(read("bob", 10), team)
    assert rules(checker) == {"lost"}


@pytest.mark.parametrize(
    ("principal", "status", "text", "rule"),
    [
        ("ann", 404, None, "lost"),
        ("ann", 200, "another text", "lost"),
        ("bob", 403, None, "leaked"),
    ],
)
def test_a_get_is_of_the_text_that_was_sent(
    checker: Checker, principal: str, status: int, text: str | None, rule: str
) -> None:
    private = checker.history.documents[1]
    checker.got(read("ann", 10, 1), private, 200, private.texts[1])
    checker.got(read("bob", 10), private, 404, None)
    assert checker.violations == []
    checker.got(read(principal, 10), private, status, text)
    assert rules(checker) == {rule}


def test_a_walk_has_no_document_twice(checker: Checker) -> None:
    checker.walked(read("ann", 10, ids=("kdoc_1", "kdoc_2")))
    assert checker.violations == []
    checker.walked(read("ann", 10, ids=("kdoc_1", "kdoc_2", "kdoc_1")))
    assert rules(checker) == {"doubled"}


def test_a_key_answers_the_same_again(checker: Checker) -> None:
    checker.replayed(checker.history.documents[1], ANSWER, ANSWER)
    assert checker.violations == []
    checker.replayed(checker.history.documents[1], ANSWER, replace(ANSWER, version_id="kver_2"))
    assert rules(checker) == {"replay"}


@pytest.mark.parametrize(
    ("status", "retry_after", "code"),
    [
        (500, None, "internal_error"),
        (401, None, "unauthenticated"),
        (503, None, "database_busy"),
        (409, None, "conflict"),
    ],
)
def test_a_fault_is_a_refusal_that_says_when_to_come_back(
    checker: Checker, status: int, retry_after: str | None, code: str
) -> None:
    checker.answered("add", 200, (200,), None, "")
    checker.answered("add", 503, (200,), "2", "database_unavailable")
    checker.answered("add", 409, (200, 409), "1", "idempotency_key_in_use")
    assert checker.violations == []
    checker.answered("add", status, (200,), retry_after, code)
    assert rules(checker) == {"refusal"}


# In the end


def row(
    number: int, *, tenant: str = "north", revision: int = 1, version: int = 1, status: str = "active"
) -> VersionRow:
    gone = status == "tombstoned"
    return VersionRow(
        tenant=tenant,
        ref=f"doc-{number}",
        document_id=f"kdoc_{number}",
        version_id=f"kver_{number}_{revision}",
        version=version,
        status=status,
        title="[redacted]" if gone else f"Note {canary(number, revision)}",
        has_raw=True,
        expected_chunks=1,
        chunks=1,
        vectors=0 if gone else 1,
        embed_state="embedded",
    )


def whole() -> EndState:
    rows = [row(1), row(2), row(3, tenant="south"), row(4, status="tombstoned")]
    north = [EventRow(n, "captured", f"kdoc_{d}", f"kver_{d}_1") for n, d in enumerate((1, 2, 4), 1)]
    return EndState(
        versions=rows,
        events={
            "north": [*north, EventRow(4, "forgotten", "kdoc_4", None)],
            "south": [EventRow(1, "captured", "kdoc_3", "kver_3_1")],
        },
        counters={"north": 4, "south": 1},
        words={"chunk.text": {(1, 1), (2, 1), (3, 1)}},
    )


def without(end: EndState, number: int) -> EndState:
    return replace(end, versions=[each for each in end.versions if each.ref != f"doc-{number}"])


def instead(end: EndState, **changes: object) -> EndState:
    first, *rest = end.versions
    return replace(end, versions=[replace(first, **changes), *rest])  # type: ignore[arg-type]


def beside(end: EndState, *rows: VersionRow) -> EndState:
    return replace(end, versions=[*end.versions, *rows])


def with_event(end: EndState, event: EventRow) -> EndState:
    events = {**end.events, "north": [*end.events["north"], event]}
    return replace(end, events=events, counters={**end.counters, "north": event.position})


def test_a_whole_end_breaks_no_rule(checker: Checker) -> None:
    check_end(checker, whole())
    assert checker.violations == []


BROKEN: dict[str, tuple[str, Callable[[EndState], EndState]]] = {
    "a document is gone": ("lost", lambda end: without(end, 1)),
    "its version is not active": ("lost", lambda end: instead(end, status="superseded")),
    "a version was skipped": ("lost", lambda end: instead(end, version=2)),
    "two documents of one reference": ("doubled", lambda end: beside(end, replace(row(1), document_id="kdoc_9"))),
    "a revision is two versions": (
        "doubled",
        lambda end: beside(end, replace(row(1, version=2, status="superseded"), version_id="kver_other")),
    ),
    "two versions are active": ("doubled", lambda end: beside(end, row(1, revision=1, version=2))),
    "a version was told twice": ("doubled", lambda end: with_event(end, EventRow(5, "captured", "kdoc_1", "kver_1_1"))),
    "the forgotten is active": (
        "resurrected",
        lambda end: replace(end, versions=[*end.versions[:-1], row(4)]),
    ),
    "the forgotten stands in a table": ("resurrected", lambda end: replace(end, words={"chunk.text": {(4, 1)}})),
    "no raw capture": ("torn", lambda end: instead(end, has_raw=False)),
    "a chunk is missing": ("torn", lambda end: instead(end, expected_chunks=2)),
    "no derivation": ("torn", lambda end: instead(end, expected_chunks=None, chunks=0)),
    "no event": ("torn", lambda end: beside(end, replace(row(1, revision=1, version=2), version_id="kver_untold"))),
    "a document without a version": ("torn", lambda end: replace(end, empty_documents=["doc-1"])),
    "nobody asked for it": ("phantom", lambda end: beside(end, row(77))),
    "another's title": ("phantom", lambda end: instead(end, title=canary(2, 1))),
    "pending": ("unembedded", lambda end: instead(end, embed_state="pending", vectors=0)),
    "a vector is missing": ("unembedded", lambda end: instead(end, vectors=0)),
    "a position was skipped": ("feed", lambda end: with_event(end, EventRow(6, "retagged", "kdoc_1", None))),
    "the counter is ahead": ("feed", lambda end: replace(end, counters={"north": 9, "south": 1})),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_end_breaks_its_rule(checker: Checker, name: str) -> None:
    rule, broken = BROKEN[name]
    check_end(checker, broken(whole()))
    assert rule in rules(checker), f"{name}: {rules(checker)}"


def test_an_unanswered_add_may_be_there_or_not_and_never_half(checker: Checker) -> None:
    doubtful = checker.history.new("south", "bob")
    doubtful.writes.append(Write("add", 3, 1, frozenset(), sent=1))
    check_end(checker, whole())
    there = beside(whole(), row(5, tenant="south"))
    events = {**there.events, "south": [*there.events["south"], EventRow(2, "captured", "kdoc_5", "kver_5_1")]}
    there = replace(there, events=events, counters={"north": 4, "south": 2})
    check_end(checker, there)
    assert checker.violations == []
    check_end(checker, replace(there, versions=[*there.versions[:-1], replace(there.versions[-1], chunks=0)]))
    assert rules(checker) == {"torn"}


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param([1, 3], id="one is missing"),
        pytest.param([1, 2, 2, 4], id="one came twice"),
        pytest.param([2, 1, 4], id="out of order"),
        pytest.param([1, 2], id="the forgetting is missing"),
        pytest.param([1, 2, 4, 5], id="one was taken back"),
    ],
)
def test_a_follower_gets_each_event_once_and_in_order(checker: Checker, seen: list[int]) -> None:
    events = whole().events["north"]
    known = {event.position: event for event in [*events, EventRow(5, "captured", "kdoc_8", "kver_8")]}
    check_follower(checker, "the mirror", [known[n] for n in (1, 2, 3, 4)], events)
    check_follower(checker, "the mirror", [known[n] for n in (1, 2, 4)], events)
    assert checker.violations == [], "3 was erased by 4, and need not be told"
    check_follower(checker, "the mirror", [known[n] for n in seen], events)
    assert rules(checker) == {"feed"}


def test_every_rule_but_one_was_broken_above() -> None:
    """`stuck` is found by those who operate, who are not pure; see operators.py."""
    broken = {rule for rule, _ in BROKEN.values()} | {"leaked", "replay", "refusal"}
    assert broken == RULES.keys() - {"stuck"}
