"""Those who write: each has documents of its own, one intent at a time, and remembers what it was told."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.caller import Caller, Reply
from tests.chaos.faults import pause
from tests.chaos.history import TEAM, TEAM_TAG, Answer, Audience, Document, History, Write, canary

TOPICS = "mill weir ford quarry ferry orchard chapel tannery smithy brewery otter heron beaver newt pike".split()
GIVE_UP = 0.08
LONG = 2_500
"""Words of a text of several chunks."""


@dataclass
class Writer:
    """Works until the run is over, then finishes what it has begun."""

    caller: Caller
    history: History
    chance: random.Random
    documents: list[Document] = field(default_factory=list)
    _answered: list[tuple[Document, Write, Mapping[str, Any]]] = field(default_factory=list)
    _keys: int = 0

    async def run(self, pace: float) -> None:
        """`pace`: seconds between two intents, on average."""
        while not self.caller.line.over.is_set():
            await self._one()
            await pause(self.caller.line.over, self.chance.uniform(0, 2 * pace))

    async def _one(self) -> None:
        open_ones = [document for document in self.documents[-200:] if not document.closed]
        kind = self.chance.choices(
            ["new", "twin", "batch", "claim", "supersede", "retag", "forget", "purge", "replay"],
            [34, 6, 9, 7, 19, 9, 8, 4, 6],
        )[0]
        if kind == "batch":
            await self._batch([self._new() for _ in range(self.chance.randint(2, 6))])
        elif kind == "new" or kind == "twin" or not open_ones:
            await self._add(self._new(), twice=kind == "twin")
        elif kind == "replay":
            await self._replay()
        elif kind == "claim":
            await self._claim(open_ones)
        else:
            document = self.chance.choice(open_ones)
            if kind in ("forget", "purge"):
                await self._erase(document, kind)
            else:
                await self._again(document, retag=kind == "retag")

    # Adds

    def _new(self) -> Document:
        document = self.history.new(self.caller.tenant, self.caller.principal)
        self.documents.append(document)
        return document

    async def _again(self, document: Document, *, retag: bool) -> None:
        """A new revision, with the old audience as a rule; or the same revision for another audience."""
        last = max(document.texts)
        if retag and document.revision == last:
            await self._add(document, revision=last, audience=self._audience())
        else:
            audience = self._audience() if self.chance.random() < 0.3 else None
            await self._add(document, revision=last + 1, audience=audience)

    async def _claim(self, documents: list[Document]) -> None:
        """Distilled from two of its own that the team may read, and for the team: it is gone with either of them."""
        now = self.caller.line.clock()
        sources = [
            document
            for document in documents
            if document.revision is not None
            and TEAM in document.audiences(now, now)[0]
            and all(write.kind == "add" for write in document.writes)
        ]
        if len(sources) < 2:
            return
        claim = self._new()
        claim.sources = tuple(self.chance.sample(sources, 2))
        claim.closed = True
        await self._add(claim, audience=frozenset({TEAM}))

    async def _add(
        self, document: Document, *, revision: int = 1, audience: Audience | None = None, twice: bool = False
    ) -> None:
        if revision == 1 and audience is None:
            audience = self._audience()
        write, body = self._write(document, revision, audience)
        if self.chance.random() < 0.05:
            body |= {"wait": "embedded", "wait_ms": 1_000}
        sending = [self._send_add(write, body) for _ in range(1 + twice)]
        replies = [reply for reply in await asyncio.gather(*sending) if reply is not None and reply.status == 200]
        if len(replies) < len(sending):
            document.closed = True
        if not replies:
            return
        answers = [_answer(reply.body) for reply in replies]
        self._acknowledge(document, write, answers[0])
        self._answered.append((document, write, body))
        if twice and len(answers) == 2:
            self.caller.line.checker.replayed(document, *answers)

    async def _send_add(self, write: Write, body: Mapping[str, Any]) -> Reply | None:
        def sent() -> None:
            write.sent += 1

        return await self.caller.insist(
            "add", "add", body, self.chance, key=write.key, expected=(200, 409), give_up=GIVE_UP, sent=sent
        )

    async def _batch(self, documents: list[Document]) -> None:
        made = [self._write(document, 1, self._audience()) for document in documents]
        key = self._key()
        reply = await self.caller.insist(
            *("batch", "add/batch", {"items": [body for _, body in made]}, self.chance),
            key=key,
            expected=(200, 409),
            give_up=GIVE_UP,
        )
        items = {item["index"]: item for item in reply.body["items"]} if reply and reply.status == 200 else {}
        for index, (document, (write, _)) in enumerate(zip(documents, made, strict=True)):
            item = items.get(index, {})
            if "documentId" in item:
                self._acknowledge(document, write, _answer(item))
                continue
            document.closed = True  # of a refused item nothing is known either: the request was sent more than once
            code = item.get("error", {}).get("code")
            if code in ("internal", "invalid"):
                self.caller.line.checker.violated("refusal", f"an item of a batch was refused: {code}", document)

    def _write(self, document: Document, revision: int, audience: Audience | None) -> tuple[Write, dict[str, Any]]:
        text = document.texts.get(revision) or self._text(document, revision)
        document.texts[revision] = text
        write = Write("add", self.caller.line.clock(), revision, audience, self._key())
        document.writes.append(write)
        body: dict[str, Any] = {
            "title": f"Note {canary(document.number, revision)}",
            "text": text,
            "external_ref": document.ref,
        }
        if document.sources:
            body["derived_from"] = [_active(source).version_id for source in document.sources]
        if audience is not None:
            body["access_tags"] = [TEAM_TAG] if TEAM in audience else []
            if peers := sorted(audience - {TEAM}):
                body["share"] = {"principals": peers}
        return write, body

    def _acknowledge(self, document: Document, write: Write, answer: Answer) -> None:
        write.ended, write.answer = self.caller.line.clock(), answer
        if document.document_id != answer.document_id:
            self.caller.line.checker.violated("doubled", f"it was answered another id, {answer.document_id}", document)

    async def _replay(self) -> None:
        """A key that was answered before, sent again with its body."""
        if not self._answered:
            return
        document, write, body = self.chance.choice(self._answered[-100:])
        if any(each.kind != "add" for each in document.writes) or write.answer is None:
            return
        reply = await self.caller.send("replay", "add", body, key=write.key, expected=(200, 409))
        if reply.status == 200:
            self.caller.line.checker.replayed(document, write.answer, _answer(reply.body))

    # Erasure

    async def _erase(self, document: Document, kind: str) -> None:
        write = Write("forget" if kind == "forget" else "purge", self.caller.line.clock(), audience=frozenset())
        document.writes.append(write)

        def sent() -> None:
            write.sent += 1

        reply = await self.caller.insist(
            *(kind, f"documents/{document.document_id}/{kind}", {}, self.chance),
            expected=(200, 404) if kind == "purge" else (200,),
            give_up=GIVE_UP,
            sent=sent,
        )
        if reply is None or reply.status not in (200, 404):
            document.closed = True
            return
        write.ended = self.caller.line.clock()
        if reply.status == 404 and write.sent == 1:
            self.caller.line.checker.violated("lost", "a purge did not find it", document)
        # A forget has no key: an earlier request of the same may still come in, and would meet what is added now.
        document.closed = kind == "purge" or write.sent > 1 or self.chance.random() < 0.5

    # Words

    def _text(self, document: Document, revision: int) -> str:
        count = LONG if self.chance.random() < 0.03 else self.chance.randint(8, 40)
        words = self.chance.choices(TOPICS, k=count)
        return f"{canary(document.number, revision)} {' '.join(words)}."

    def _audience(self) -> Audience:
        others = {"ann", "bob", "cat"} - {self.caller.principal}
        return frozenset(self.chance.choice([[], [], [TEAM], [TEAM], [self.chance.choice(sorted(others))]]))

    def _key(self) -> str:
        self._keys += 1
        return f"{self.caller.principal}-{self._keys}"


def _active(document: Document) -> Answer:
    answer = document.writes[-1].answer
    assert answer is not None
    return answer


def _answer(body: Mapping[str, Any]) -> Answer:
    return Answer(body["documentId"], body["versionId"], body["status"])
