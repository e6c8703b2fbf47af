"""Inputs and results of workflows, activities, signals and updates: ids and counts, never content.

Versioned by addition only: new fields need defaults, and unknown ones are ignored, so that an old worker
decodes a new payload. `IngestInput.document` is the host's own doing and is not used by the facade.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from memory_plane.contracts.wire import AddFields

Id = Annotated[str, Field(max_length=1000)]
VersionIds = Annotated[list[Id], Field(max_length=500)]


class Payload(BaseModel):
    model_config = ConfigDict(frozen=True)


class Identity(Payload):
    """Whom a host has authenticated. Which queues may speak for whom is the operator's Temporal authorization."""

    tenant_id: Id
    principal_id: Id


class IngestInput(Payload):
    """Either `version_ids` already captured (what the facade passes), or one inline `document` with `principal_id`."""

    tenant_id: Id
    version_ids: VersionIds = []
    principal_id: Id | None = None
    document: AddFields | None = None
    idempotency_key: Annotated[str, Field(max_length=255)] | None = None


class IngestResult(Payload):
    document_id: Id | None = None
    version_id: Id | None = None
    status: Literal["captured", "noop"] = "captured"
    chunks: int = 0
    degraded: Annotated[list[str], Field(max_length=16)] | None = None
    claims: int = 0
    embedded: int = 0
    failed: int = 0


class IngestStatus(Payload):
    stage: Literal["capture", "embed", "process", "done"] = "capture"
    versions: int = 0
    embedded: int = 0
    pending: int = 0
    failed: int = 0


class CaptureInput(Payload):
    tenant_id: Id
    principal_id: Id
    document: AddFields
    idempotency_key: Annotated[str, Field(max_length=255)]


class CaptureResult(Payload):
    document_id: Id
    version_id: Id
    status: Literal["captured", "noop"]
    chunks: int


class VersionsInput(Payload):
    tenant_id: Id
    version_ids: VersionIds


class EmbedResult(Payload):
    """Counts of derivations after one pass over the given versions."""

    embedded: int = 0
    pending: int = 0
    failed: int = 0
    not_configured: int = 0


class PendingProcess(Payload):
    version_id: Id
    processor: Id


class PendingResult(Payload):
    """What remains to be done for the given versions, read from `derivation` and `process_request`."""

    embed: VersionIds = []
    process: Annotated[list[PendingProcess], Field(max_length=5000)] = []


class ReconcileInput(Payload):
    older_than_seconds: int = 60
    limit: int = 5000


class ReconcileResult(Payload):
    ingests_started: int = 0
    keys_expired: int = 0
    retired: int = 0


class SweepInput(Payload):
    tenant_id: Id | None = None


class SweepResult(Payload):
    deprecated: int = 0
