"""What a capture answers: ids, and what is still to be done."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from memory_plane.contracts.enums import EmbedState

CaptureStatus = Literal["captured", "noop"]


@dataclass(frozen=True, slots=True)
class CapturedChunk:
    chunk_id: str
    text_to_embed: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ForeignShare:
    """Share rules for a grant store that is not ours, to be written there after the commit."""

    document_id: str
    version_id: str
    shared_by: str
    peers: Sequence[str]
    dropped: Sequence[str]


@dataclass(frozen=True, slots=True)
class Captured:
    """`chunks` are those just written and to be embedded; none for a NOOP or a replay, whose embed may be pending.
    `chunk_count` is of the chunks just written, to be embedded or not.

    `embed_state` is that of the version under the live generation; None where nothing has been derived under it.
    `grants_materialized` is None where no principals were shared with.
    """

    document_id: str
    version_id: str
    status: CaptureStatus
    generation_id: str
    embed_state: EmbedState | None
    process_pending: bool = False
    chunk_count: int = 0
    chunks: Sequence[CapturedChunk] = ()
    replayed: bool = False
    grants_materialized: bool | None = None
    audience_request_ids: Sequence[str] = ()
    foreign_share: ForeignShare | None = None
