"""Those who read: they search, list and get, and mirror the feed; what they are told is checked as it comes."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.caller import Caller, Reply
from tests.chaos.checker import EventRow, Read
from tests.chaos.faults import pause
from tests.chaos.history import Document, History, canary
from tests.chaos.writers import TOPICS

PAGE = 50
WALK = 5
"""Pages of one walk through a list."""


@dataclass
class Reader:
    caller: Caller
    history: History
    chance: random.Random

    async def run(self, pace: float) -> None:
        while not self.caller.line.over.is_set():
            await self._one()
            await pause(self.caller.line.over, self.chance.uniform(0, 2 * pace))

    async def _one(self) -> None:
        kind = self.chance.choices(["find", "topic", "get", "list", "walk"], [45, 20, 20, 10, 5])[0]
        documents = self.history.documents
        if kind in ("find", "get") and documents:
            # The newest as a rule: that is where something is going on. Of any tenant.
            newest = max(documents)
            first = max(1, newest - 150) if self.chance.random() < 0.7 else 1
            document = documents[self.chance.randint(first, newest)]
            if document.tenant != self.caller.tenant and self.chance.random() < 0.7:
                return
            await (self._find(document) if kind == "find" else self.get(document))
        elif kind == "topic":
            await self._search(" ".join(self.chance.sample(TOPICS, 2)))
        elif kind == "list":
            reply = await self.caller.send("list", f"list?limit={PAGE}")
            if reply.status == 200:
                ids = [each["documentId"] for each in reply.body["events"]]
                self.caller.line.checker.saw(self._read(reply, ids))
        elif kind == "walk":
            await self._walk()

    async def _search(self, query: str) -> Reply:
        return await self.caller.send("search", "search", {"query": query, "limit": 10})

    async def _find(self, document: Document) -> None:
        revisions = [write.revision for write in document.writes if write.revision is not None]
        if not revisions:
            return
        revision = document.revision or self.chance.choice(revisions)
        reply = await self._search(canary(document.number, revision))
        if reply.status == 200:
            body = reply.body
            read = self._read(reply, [item["documentId"] for item in body["items"]], body.get("degraded") or ())
            if not self.caller.line.checker.searched(read, document):
                again = await self._search(canary(document.number, revision))
                told = str(document.document_id) in again.text
                self.caller.line.notes.append(
                    f"{read.ended:.2f}: {document.number} was not found; {again.call.ended:.2f} it was "
                    f"{'found' if told else 'not found again'} ({again.status})"
                )

    async def get(self, document: Document) -> None:
        if document.document_id is None:
            return
        reply = await self.caller.send("get", f"documents/{document.document_id}", expected=(200, 404))
        if reply.status in (200, 404):
            text = reply.body.get("text") if reply.status == 200 else None
            self.caller.line.checker.got(self._read(reply, [document.document_id]), document, reply.status, text)

    async def _walk(self) -> None:
        """Some pages of a list, as one read: it begins with the first request and ends with the last answer."""
        replies: list[Reply] = []
        ids: list[str] = []
        cursor = ""
        for _ in range(WALK):
            reply = await self.caller.send("list", f"list?limit={PAGE}{cursor}")
            if reply.status != 200:
                break
            replies.append(reply)
            ids += [each["documentId"] for each in reply.body["events"]]
            following = reply.body.get("nextCursor")
            if following is None:
                break
            cursor = f"&cursor={following}"
        for reply in replies:
            self.caller.line.checker.saw(self._read(reply, []))
        if replies:
            call = replies[0].call
            read = Read(self.caller.tenant, self.caller.principal, "walk", call.begun, replies[-1].call.ended, "", ids)
            self.caller.line.checker.walked(read)

    def _read(self, reply: Reply, ids: list[str], degraded: Any = ()) -> Read:
        call = reply.call
        return Read(
            *(self.caller.tenant, self.caller.principal, call.verb, call.begun, call.ended),
            text=reply.text,
            document_ids=ids,
            degraded=degraded,
        )


@dataclass
class Follower:
    """A mirror: reads every event from where it stands, and keeps its place over failures."""

    caller: Caller
    seen: list[EventRow] = field(default_factory=list)
    cursor: int = 0

    async def run(self, pace: float) -> None:
        while not self.caller.line.over.is_set():
            await self.step()
            await pause(self.caller.line.over, pace)

    async def step(self) -> bool:
        """One page; whether there was something new."""
        reply = await self.caller.send("feed", f"feed?events=all&limit=100&after={self.cursor}")
        if reply.status != 200:
            return True
        self.seen += [
            EventRow(each["position"], each["event"], each["documentId"], each.get("versionId"))
            for each in reply.body["entries"]
        ]
        moved: bool = reply.body["nextCursor"] != self.cursor
        self.cursor = reply.body["nextCursor"]
        return moved

    async def catch_up(self, seconds: float) -> None:
        """To the end of the feed, for at most so long."""
        async with asyncio.timeout(seconds):
            moved = True
            while moved:
                moved = await self.step()


@dataclass
class FeedReader:
    """Reads versions as they are captured, with its own eyes: what it is given must be its to see."""

    caller: Caller
    cursor: int = 0
    versions: list[str] = field(default_factory=list)

    async def run(self, pace: float) -> None:
        while not self.caller.line.over.is_set():
            reply = await self.caller.send("feed", f"feed?limit=100&after={self.cursor}")
            if reply.status == 200:
                call = reply.call
                entries = reply.body["entries"]
                ids = [each["documentId"] for each in entries]
                checker = self.caller.line.checker
                checker.saw(
                    Read(self.caller.tenant, self.caller.principal, "feed", call.begun, call.ended, reply.text, ids)
                )
                positions = [each["feedSeq"] for each in entries]
                if positions != sorted(set(positions)) or (positions and positions[0] <= self.cursor):
                    checker.violated("feed", f"{self.caller.principal} in {self.caller.tenant} was given {positions}")
                self.versions += [each["versionId"] for each in entries]
                self.cursor = reply.body["nextCursor"]
            await pause(self.caller.line.over, pace)
