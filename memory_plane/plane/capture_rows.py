"""From a plan to the rows of one version and what is derived of it."""

from memory_plane.contracts.enums import EmbedState
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.caller import Caller
from memory_plane.core.embed_text import text_to_embed
from memory_plane.core.planning import CapturePlan
from memory_plane.plane.captured import CapturedChunk
from memory_plane.store.captures import Derived, NewChunk, NewVersion
from memory_plane.store.live_generation import LiveGeneration
from memory_plane.store.versions import DocumentState


def new_version(caller: Caller, plan: CapturePlan, document_id: str, state: DocumentState | None) -> NewVersion:
    """The version after all that the document has; `state` None: its first."""
    return NewVersion(
        id=new_id(IdKind.VERSION),
        tenant_id=caller.tenant_id,
        document_id=document_id,
        number=state.last_number + 1 if state else 1,
        supersedes_version_id=state.active.id if state and state.active else None,
        title=plan.title,
        kind=plan.kind,
        content_hash=plan.content_hash,
        occurred_at=plan.occurred_at,
        valid_from=plan.valid_from,
        valid_until=plan.valid_until,
        temporal_class=plan.temporal_class,
        retention_class=plan.retention_class,
        provenance=plan.provenance,
        lineage=plan.lineage,
        created_by=caller.principal_id,
        created_by_kind=plan.created_by_kind,
        generator_agent_id=plan.generator_agent_id,
        authority=plan.authority,
        actor_count=plan.actor_count,
        has_social_signal=plan.has_social_signal,
        attributes=plan.attributes,
    )


def derive(plan: CapturePlan, generation: LiveGeneration) -> Derived:
    """The chunks under this generation, and the intent to embed them where its recipe names an endpoint."""
    return Derived(
        generation_id=generation.id,
        embed_state=EmbedState.PENDING if generation.recipe.embed else EmbedState.NOT_CONFIGURED,
        chunks=[
            NewChunk(
                id=new_id(IdKind.CHUNK),
                text=chunk.text,
                context=chunk.context,
                grams=chunk.grams,
                span_start=chunk.start,
                span_end=chunk.end,
                token_count=chunk.token_count,
                role=chunk.role,
            )
            for chunk in plan.chunks
        ],
    )


def chunks_to_embed(derived: Derived, generation: LiveGeneration) -> list[CapturedChunk]:
    embed = generation.recipe.embed
    if embed is None:
        return []
    return [CapturedChunk(chunk.id, text_to_embed(embed, chunk.context, chunk.text)) for chunk in derived.chunks]
