"""The distiller's work: the feed from the stored cursor, as a principal of its own; each entry into claims, once.

What it writes of an entry and the cursor behind it are one transaction, begun by a compare-and-set: an attempt that is
late, or is one of two, finds the cursor elsewhere and writes nothing.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from memory_plane.contracts.distilling import DistillEntry, DistillOne, DistillOutcome, DistillPage, DistillSettle
from memory_plane.contracts.enums import EmbedState, Provenance, Verb
from memory_plane.contracts.errors import Conflict, Invalid, Unavailable
from memory_plane.contracts.names import CLAIM_ADAPTER
from memory_plane.contracts.wire import AddFields
from memory_plane.core.caller import Caller
from memory_plane.core.text import clean_text
from memory_plane.core.visibility import Visibility
from memory_plane.models.chat import CHAT_STYLE
from memory_plane.models.endpoint import Endpoint
from memory_plane.models.pool import ModelPool
from memory_plane.plane.access import Access, visible_versions
from memory_plane.plane.capture import Capture
from memory_plane.plane.chat_distiller import ChatDistiller, NewClaim, Note
from memory_plane.plane.feed import Feed
from memory_plane.plane.ports import WorkflowStarter
from memory_plane.plane.withdrawing import lock_claims, withdraw_claims
from memory_plane.settings import Settings
from memory_plane.store import claims, consumers, locks, quarantine
from memory_plane.store.database import Connection, Pool, connection, in_transaction
from memory_plane.store.feed_events import Event, append_events
from memory_plane.store.library import raw_payload
from memory_plane.store.quarantine import Quarantined

PAGE = 50
RETRIES = 20
"""How many quarantined entries that are to be driven again go before one page of the feed."""
LISTED = 1_000


class Distilling:
    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        access: Access,
        capture: Capture,
        feed: Feed,
        models: ModelPool,
        starter: WorkflowStarter | None,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._access = access
        self._capture = capture
        self._feed = feed
        self._starter = starter
        self._chat = _chat_distiller(settings, models)

    async def page(self, tenant_id: str, agent_id: str) -> DistillPage:
        """What comes next: entries to be driven again, then those of the feed behind the cursor, without what the
        agent generated itself and, unless configured otherwise, without claims.

        Raises Conflict where nothing is configured to distil with, Forbidden where the principal lacks a grant.
        """
        if not self._settings.distills:
            raise Conflict(
                "No distiller is configured; set DISTILL_BASE_URL and DISTILL_MODEL, or DISTILL_PROCESSOR.",
                code="distiller_not_configured",
            )
        visibility = await self._visibility(tenant_id)
        consumer = _consumer(agent_id)
        async with connection(self._pool) as conn:
            again = await quarantine.to_retry(conn, tenant_id, agent_id, RETRIES)
            cursor = await consumers.position(conn, tenant_id, consumer)
        found = await self._feed.entries(visibility, cursor, PAGE, exclude_generator=agent_id)
        async with connection(self._pool) as conn:
            skipped: set[str] = set()
            if not self._settings.distill_claims:
                skipped = await claims.claims_among(conn, tenant_id, [entry.version_id for entry in found.entries])
            fresh = [entry for entry in found.entries if entry.version_id not in skipped]
            if not fresh and found.next_cursor != cursor:
                await consumers.advance(conn, tenant_id, consumer, cursor, found.next_cursor)
        entries = [DistillEntry(version_id=version_id) for version_id in again]
        for entry in fresh:
            entries.append(DistillEntry(version_id=entry.version_id, position=entry.feed_seq, after=cursor))
            cursor = entry.feed_seq
        return DistillPage(
            entries=tuple(entries),
            drained=len(found.entries) < PAGE and not found.degraded and len(again) < RETRIES,
            processor=self._settings.distill_processor,
        )

    async def distil(self, given: DistillOne) -> DistillOutcome:
        """Read the entry, ask the chat endpoint without holding a connection, and write what it claims.

        Raises what the endpoint makes of this one text, so that it counts as an attempt; an endpoint or a database that
        is away for everything is an outcome.
        """
        if self._chat is None:
            raise Conflict("No chat endpoint is configured; set DISTILL_BASE_URL and DISTILL_MODEL.")
        try:
            visibility = await self._visibility(given.tenant_id)
            note = await self._note(visibility, given.entry.version_id)
            found = [] if note is None else await self._chat.claims(note)
        except Unavailable as fault:
            if self._chat.blames_text(fault) and await self._chat.answers():
                raise
            return DistillOutcome(outcome="unavailable")
        items = [_item(given, note, number, claim) for number, claim in enumerate(found)] if note else []
        return await self._write(visibility, given, items)

    async def settle(self, given: DistillSettle) -> bool:
        """Move on from an entry that was processed elsewhere, or put it aside; False when it had been done already."""
        failed = given.outcome in ("poison", "failed")
        finish = _Finish(
            given.tenant_id,
            given.agent_id,
            given.entry,
            kept=None if failed else given.claims,
            reason=(given.reason or "The processor failed.") if failed else None,
            attempts=given.attempts,
        )

        async def work(conn: Connection) -> bool:
            if not await finish.begin(conn):
                return False
            await append_events(conn, given.tenant_id, await finish.end(conn))
            return True

        return await in_transaction(self._pool, work)

    async def quarantined(self, tenant_id: str) -> list[Quarantined]:
        """What the tenant's distillers have put aside, newest first, at most LISTED."""
        async with connection(self._pool) as conn:
            return await quarantine.listed(conn, tenant_id, LISTED)

    async def retry(self, tenant_id: str, agent_id: str, version_ids: Sequence[str] | None) -> int:
        """Have the agent's next run drive these again (None: all it has put aside); how many there were."""
        async with connection(self._pool) as conn:
            return await quarantine.request_retry(conn, tenant_id, agent_id, version_ids)

    async def _visibility(self, tenant_id: str) -> Visibility:
        visibility = await self._access.visibility(Caller(tenant_id, self._settings.distill_principal))
        self._access.require(visibility, Verb.SEARCH)
        self._access.require(visibility, Verb.ADD)
        return visibility

    async def _note(self, visibility: Visibility, version_id: str) -> Note | None:
        """None for what is forgotten, withdrawn, or not the distiller's to see any more."""
        tenant = visibility.caller.tenant_id
        async with connection(self._pool) as conn:
            source = await claims.source(conn, tenant, version_id)
            if source is None or not await visible_versions(conn, visibility, [version_id]):
                return None
            payload = await raw_payload(conn, tenant, source.raw_capture_id)
        if payload is None:
            return None
        return Note(source.title, source.kind, source.occurred_at, clean_text(json.loads(payload)["text"]))

    async def _write(self, visibility: Visibility, given: DistillOne, items: Sequence[AddFields]) -> DistillOutcome:
        finish = _Finish(given.tenant_id, given.agent_id, given.entry, kept=len(items))
        try:
            captured = await self._capture.capture_together(visibility, items, finish)
        except Invalid as refusal:
            if refusal.code != "source_gone":
                raise
            items = []
            finish = _Finish(given.tenant_id, given.agent_id, given.entry, kept=0)
            captured = await self._capture.capture_together(visibility, items, finish)
        except Unavailable:
            return DistillOutcome(outcome="unavailable")
        if captured is None:
            return DistillOutcome(outcome="moved")
        await self._start(
            given.tenant_id, [each.version_id for each in captured if each.embed_state is EmbedState.PENDING]
        )
        return DistillOutcome(outcome="written" if items else "skip", claims=len(captured))

    async def _start(self, tenant_id: str, version_ids: Sequence[str]) -> None:
        if self._starter is None or not version_ids:
            return
        with suppress(Unavailable):  # the reconciler starts it
            await self._starter.start_ingest(tenant_id, version_ids)


@dataclass(frozen=True, slots=True)
class _Finish:
    """What ends an entry, with its claims or without: the first `kept` claims stay and higher ones of an earlier run
    go; or (`kept` None) it is put aside for `reason`. Then the cursor moves, or the retry is over."""

    tenant_id: str
    agent_id: str
    entry: DistillEntry
    kept: int | None
    reason: str | None = None
    attempts: int = 1

    async def begin(self, conn: Connection) -> bool:
        if not await self._is_next(conn):
            return False
        await locks.share_cutover(conn, self.tenant_id)
        # All at once and in order of id: the captures that follow would take them one by one.
        await lock_claims(conn, self.tenant_id, self.agent_id, self.entry.version_id)
        return True

    async def end(self, conn: Connection) -> Sequence[Event]:
        events: list[Event] = []
        if self.kept is not None:
            events = await withdraw_claims(conn, self.tenant_id, self.agent_id, self.entry.version_id, self.kept)
        if self.reason is not None:
            await quarantine.put(conn, self.tenant_id, self.agent_id, self.entry.version_id, self.reason, self.attempts)
        elif self.entry.position is None:
            await quarantine.remove(conn, self.tenant_id, self.agent_id, self.entry.version_id)
        if self.entry.position is not None:
            consumer = _consumer(self.agent_id)
            await consumers.advance(conn, self.tenant_id, consumer, self.entry.after, self.entry.position)
        return events

    async def _is_next(self, conn: Connection) -> bool:
        if self.entry.position is None:
            return await quarantine.hold(conn, self.tenant_id, self.agent_id, self.entry.version_id)
        return await consumers.hold(conn, self.tenant_id, _consumer(self.agent_id), self.entry.after)


def _item(given: DistillOne, note: Note, number: int, claim: NewClaim) -> AddFields:
    """Without tags: a claim gets those that its sources have in common, and its writer's own."""
    return AddFields(
        title=claim.title,
        text=claim.text,
        kind="claim",
        adapter=CLAIM_ADAPTER,
        external_ref=f"{given.agent_id}/{given.entry.version_id}/{number}",
        occurred_at=note.occurred_at,
        generator_agent_id=given.agent_id,
        provenance=Provenance.INFERRED,
        derived_from=[given.entry.version_id],
    )


def _consumer(agent_id: str) -> str:
    return f"distiller:{agent_id}"


def _chat_distiller(settings: Settings, models: ModelPool) -> ChatDistiller | None:
    if settings.distill_base_url is None or settings.distill_model is None:
        return None
    endpoint = Endpoint(
        settings.distill_base_url,
        settings.distill_model,
        CHAT_STYLE,
        settings.secret("DISTILL_API_KEY"),
        settings.distill_timeout_ms / 1000,
    )
    return ChatDistiller(models.chat(endpoint))
