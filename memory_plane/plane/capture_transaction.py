"""The one transaction that writes a capture: short, in the global lock order, safe to run again from its start."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_plane.contracts.enums import EdgeRel, EmbedState, EndpointType, FeedEventKind, Lineage, RetentionClass, Verb
from memory_plane.contracts.errors import Forbidden, KeyReused
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.access_tags import share_principals
from memory_plane.core.planning import CapturePlan
from memory_plane.core.visibility import Visibility
from memory_plane.plane.audience import Audience, decide_audience, named_owners
from memory_plane.plane.capture_request import CaptureRequest
from memory_plane.plane.capture_rows import chunks_to_embed, derive, new_version
from memory_plane.plane.captured import Captured, ForeignShare
from memory_plane.plane.references import References, lock_references
from memory_plane.store import (
    audience_requests,
    captures,
    documents,
    grants,
    graph,
    idempotency,
    lineage,
    locks,
    versions,
)
from memory_plane.store.database import Connection
from memory_plane.store.documents import LockedDocument, NewDocument
from memory_plane.store.feed_events import Event, append_events
from memory_plane.store.graph import Edge
from memory_plane.store.idempotency import Answered
from memory_plane.store.live_generation import LiveGeneration
from memory_plane.store.versions import ActiveVersion, DocumentState


class StartOver(Exception):
    """What was decided before the locks is not true under them; nothing has been written."""


class LiveGenerationMoved(StartOver):
    """The plan was made for another generation, or for another recipe of it."""


@dataclass(frozen=True, slots=True)
class CaptureTransaction:
    """`grants_are_ours`: share rules go into our own table, here, and not to a foreign store after the commit.

    `told` collects the events instead of having them appended: for several captures in one transaction, whose caller
    appends them all at its end.
    """

    conn: Connection
    visibility: Visibility
    request: CaptureRequest
    plan: CapturePlan
    live: LiveGeneration
    grants_are_ours: bool
    told: list[Event] | None = None

    async def run(self) -> Captured:
        caller, keyed = self.request.caller, self.request.keyed
        await locks.enter_capture(self.conn, caller.tenant_id, caller.principal_id, keyed.key if keyed else None)
        if keyed:
            answer = await idempotency.answered(self.conn, caller.tenant_id, caller.principal_id, keyed.key)
            if answer is not None:
                return await self._replay(answer)
        references = await self._lock_references()
        new, audience = self._new_document(references)
        if not self.request.is_named:
            alone = LockedDocument(new.id, new.created_by, tuple(new.access_tags), is_new=True, live=None)
            return await self._write(alone, audience, references, state=None, events=[], unwritten=new)
        document = await self._enter_document(new, references)
        if document.is_new:
            return await self._write(document, audience, references, state=None, events=[])
        self._require_writer(document)
        return await self._capture_again(document, references)

    async def _lock_references(self) -> References:
        edges = self.plan.edges
        if not edges:
            return References()
        source = self.request.document
        own = await documents.find(self.conn, self._tenant, source.adapter, source.external_ref)
        return await lock_references(self.conn, self.visibility, own, edges)

    def _new_document(self, references: References) -> tuple[NewDocument, Audience]:
        """The document as it is when it is new, and its audience then."""
        caller, plan = self.request.caller, self.plan
        document_id = new_id(IdKind.DOCUMENT)
        audience = self._decide(document_id, caller.principal_id, None, references)
        document = NewDocument(
            id=document_id,
            tenant_id=caller.tenant_id,
            adapter=self.request.document.adapter,
            external_ref=self.request.document.external_ref,
            title=plan.title,
            kind=plan.kind,
            access_tags=audience.tags,
            attributes=plan.attributes,
            occurred_at=plan.occurred_at,
            is_claim=plan.lineage is Lineage.DERIVED,
            created_by=caller.principal_id,
        )
        return document, audience

    async def _enter_document(self, new: NewDocument, references: References) -> LockedDocument:
        """The document of that name under its lock, inserted where it is new."""
        document = await documents.insert_or_lock(self.conn, new)
        self._require_live(document.live)
        if self.plan.edges and not document.is_new and document.id not in references.locked_documents:
            raise StartOver
        return document

    def _require_live(self, found: tuple[str, str] | None) -> None:
        if found != (self.live.id, self.live.stamp):
            raise LiveGenerationMoved

    def _decide(self, document_id: str, owner: str, current: Sequence[str] | None, references: References) -> Audience:
        return decide_audience(
            self.request.wanted,
            tenant_id=self._tenant,
            document_id=document_id,
            owner=owner,
            current=current,
            references=references,
        )

    def _require_writer(self, document: LockedDocument) -> None:
        """Who is refused learns only that the name is taken."""
        if document.created_by == self.request.caller.principal_id:
            return
        if not any(self.visibility.allows(tag, Verb.ADD) for tag in document.access_tags):
            raise Forbidden(
                "This adapter and external_ref name a document that is not yours to write; use another external_ref.",
                code="not_document_writer",
            )
        if self.request.wanted.is_given:
            raise Forbidden(
                "Only the creator of this document may set access_tags or share; leave them out.",
                code="not_document_owner",
            )

    async def _capture_again(self, document: LockedDocument, references: References) -> Captured:
        state = await versions.document_state(
            self.conn,
            self._tenant,
            document.id,
            generation_id=self.live.id,
            source_hash=self.request.raw.source_hash,
        )
        events: list[Event] = []
        if state.active and state.active.is_expired:
            await versions.deprecate_expired(self.conn, self._tenant, state.active.id)
            events.append(Event(FeedEventKind.DEPRECATED, document.id, state.active.id))
            state = state.without_active()
        current = None if state.is_forgotten else document.access_tags
        same = state.active if state.active and state.active.content_hash == self.plan.content_hash else None
        if same and references.is_claim:
            receipts = await lineage.receipts(self.conn, self._tenant, [same.id])
            references = references.with_approved({source: tags for (_, source), tags in receipts.items()})
        audience = self._decide(document.id, document.created_by, current, references)
        if same:
            return await self._noop(document, audience, references, same)
        return await self._write(document, audience, references, state, events)

    async def _write(
        self,
        document: LockedDocument,
        audience: Audience,
        references: References,
        state: DocumentState | None,
        events: list[Event],
        unwritten: NewDocument | None = None,
    ) -> Captured:
        """A new version; `state` None: of a new document, inserted already but for an `unwritten` one."""
        plan, request = self.plan, self.request
        version = new_version(request.caller, plan, document.id, state)
        if state is not None:
            await versions.replace_active(
                self.conn,
                self._tenant,
                document.id,
                title=plan.title,
                kind=plan.kind,
                attributes=plan.attributes,
                occurred_at=plan.occurred_at,
                is_claim=plan.lineage is Lineage.DERIVED,
                access_tags=audience.tags,
            )
        edges = await self._edges(document.id, version.id)
        derived = derive(plan, self.live)
        reused = state.raw_capture_id if state else None
        materialized = self._materialized(audience)
        live = await captures.write(
            self.conn,
            version,
            derived,
            raw_capture_id=reused or new_id(IdKind.RAW_CAPTURE),
            adapter=request.document.adapter,
            raw=None if reused else request.raw,
            edges=edges,
            processors=request.processors,
            keyed=request.keyed,
            grants_materialized=materialized,
            document=unwritten,
        )
        if unwritten is not None:
            self._require_live(live)
        requests = await self._ask_widening(document.id, version.id, audience, references)
        await self._share(document, version.id, audience)
        events.append(Event(FeedEventKind.CAPTURED, document.id, version.id))
        if state is not None and not state.is_forgotten:
            events += self._audience_events(document, audience)
        await self._tell(events)
        return Captured(
            document_id=document.id,
            version_id=version.id,
            status="captured",
            generation_id=self.live.id,
            embed_state=derived.embed_state,
            process_pending=bool(request.processors),
            chunk_count=len(derived.chunks),
            chunks=chunks_to_embed(derived, self.live),
            grants_materialized=materialized,
            audience_request_ids=requests,
            foreign_share=self._foreign_share(document, version.id, audience),
        )

    async def _noop(
        self, document: LockedDocument, audience: Audience, references: References, active: ActiveVersion
    ) -> Captured:
        """The same content again: no version and no raw capture, but what was given beside the content is applied."""
        request = self.request
        events: list[Event] = []
        if request.wanted.is_given and tuple(audience.tags) != document.access_tags:
            await documents.retag(self.conn, self._tenant, document.id, audience.tags)
            events += self._audience_events(document, audience)
        events += await self._reclass(document.id, active)
        embed_state = active.embed_state
        if embed_state is EmbedState.FAILED:
            await versions.drive_embed_again(self.conn, self._tenant, active.id, self.live.id)
            embed_state = EmbedState.PENDING
        process_pending = False
        if request.processors:
            await versions.request_process(self.conn, self._tenant, active.id, request.processors)
            process_pending = (await versions.remaining(self.conn, self._tenant, [active.id]))[
                active.id
            ].process_pending
        materialized = self._materialized(audience)
        if request.keyed:
            await idempotency.remember(
                self.conn,
                self._tenant,
                request.keyed,
                document_id=document.id,
                version_id=active.id,
                status="noop",
                grants_materialized=materialized,
            )
        requests = await self._ask_widening(document.id, active.id, audience, references)
        await self._share(document, active.id, audience)
        await self._tell(events)
        return Captured(
            document_id=document.id,
            version_id=active.id,
            status="noop",
            generation_id=self.live.id,
            embed_state=embed_state,
            process_pending=process_pending,
            grants_materialized=materialized,
            audience_request_ids=requests,
            foreign_share=self._foreign_share(document, active.id, audience),
        )

    async def _tell(self, events: list[Event]) -> None:
        if self.told is None:
            await append_events(self.conn, self._tenant, events)
        else:
            self.told.extend(events)

    async def _replay(self, answer: Answered) -> Captured:
        keyed = self.request.keyed
        if keyed is None or answer.body_hash != keyed.body_hash:
            raise KeyReused("This Idempotency-Key was used with another body within the last 24 hours; take a new key.")
        left = (await versions.remaining(self.conn, self._tenant, [answer.version_id])).get(answer.version_id)
        return Captured(
            document_id=answer.document_id,
            version_id=answer.version_id,
            status=answer.status,
            generation_id=self.live.id,
            embed_state=left.embed_state if left else None,
            process_pending=left.process_pending if left else False,
            replayed=True,
            grants_materialized=answer.grants_materialized,
            foreign_share=self._foreign_share_again(answer),
        )

    def _foreign_share_again(self, answer: Answered) -> ForeignShare | None:
        """Rules that a foreign store may never have got: only a creator shares, so the owner is the caller."""
        share, owner = self.request.wanted.share, self.request.caller.principal_id
        if answer.grants_materialized is not False or self.grants_are_ours or share is None:
            return None
        return ForeignShare(answer.document_id, answer.version_id, owner, share_principals(owner, share), ())

    async def _reclass(self, document_id: str, active: ActiveVersion) -> list[Event]:
        """A class given with the same content is applied for the version's creator; for others it says nothing."""
        wanted: RetentionClass | None = self.request.retention_class
        mine = active.created_by == self.request.caller.principal_id
        if wanted is None or wanted == active.retention_class or not mine:
            return []
        await versions.reclass(self.conn, self._tenant, active.id, wanted)
        return [Event(FeedEventKind.RECLASSED, document_id, active.id)]

    def _audience_events(self, document: LockedDocument, audience: Audience) -> list[Event]:
        """Everybody is told that tags changed, for a mirror may have to hide; who gained sight, that there is more."""
        before, after = set(document.access_tags), set(audience.tags)
        if before == after:
            return []
        events = [Event(FeedEventKind.RETAGGED, document.id)]
        if self.request.wanted.share is not None and after - before:
            events.append(Event(FeedEventKind.SHARED, document.id))
        return events

    async def _share(self, document: LockedDocument, version_id: str, audience: Audience) -> None:
        if audience.peers is None or not self.grants_are_ours:
            return
        if not document.is_new:
            await grants.revoke_share_rules(self.conn, self._tenant, [document.id], keep=named_owners(audience.tags))
        if audience.peers:
            rules = grants.share_rules(self._tenant, document.id, version_id, document.created_by, audience.peers)
            await grants.put_rules(self.conn, self._tenant, rules)

    def _foreign_share(self, document: LockedDocument, version_id: str, audience: Audience) -> ForeignShare | None:
        if audience.peers is None or self.grants_are_ours:
            return None
        dropped = named_owners(document.access_tags) - named_owners(audience.tags)
        return ForeignShare(document.id, version_id, document.created_by, audience.peers, sorted(dropped))

    def _materialized(self, audience: Audience) -> bool | None:
        """None where nobody is shared with; False until a foreign store has taken the rules."""
        return self.grants_are_ours if audience.peers else None

    async def _ask_widening(
        self, document_id: str, version_id: str, audience: Audience, references: References
    ) -> list[str]:
        requests = []
        if audience.unapproved:
            for source_version_id, source_tags in references.tags_by_source.items():
                beyond = [tag for tag in audience.unapproved if tag not in source_tags]
                asked = beyond and await audience_requests.ask(
                    self.conn,
                    self._tenant,
                    document_id=document_id,
                    version_id=version_id,
                    source_version_id=source_version_id,
                    tags=beyond,
                    requested_by=self.request.caller.principal_id,
                )
                if asked:
                    requests.append(asked)
        return requests

    async def _edges(self, document_id: str, version_id: str) -> list[Edge]:
        """What a capture mentions is mentioned by its document; what it is derived from, by this version of it."""
        edges = [Edge(edge.rel, EndpointType.VERSION, version_id, edge.to_type, edge.to_id) for edge in self.plan.edges]
        if self.plan.entities:
            labels = {(entity.kind, entity.identifier): entity.label for entity in self.plan.entities}
            entities = await graph.keep_entities(self.conn, self._tenant, labels)
            edges += [
                Edge(EdgeRel.MENTIONS, EndpointType.DOCUMENT, document_id, EndpointType.ENTITY, entity_id)
                for entity_id in entities.values()
            ]
        return edges

    @property
    def _tenant(self) -> str:
        return self.request.caller.tenant_id
