"""Inputs and results of workflows, activities, signals and updates: ids and counts, never content.

Versioned by addition only: new fields need defaults, and unknown ones are ignored, so that an old worker
decodes a new payload. `IngestInput.document` is the host's own doing and is not used by the facade.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from memory_plane.contracts.wire import AddFields

Id = Annotated[str, Field(max_length=1000)]
VersionIds = Annotated[list[Id], Field(max_length=500)]


class Payload(BaseModel):
    model_config = ConfigDict(frozen=True)


class Identity(Payload):
    """Whom a host has authenticated. Which queues may speak for whom is the operator's Temporal authorization."""

    tenant_id: Id
    principal_id: Id


class ProcessorSpec(Payload):
    """Where a host's processor is reached: an activity or a workflow of its own, by type name, on its task queue."""

    kind: Literal["activity", "workflow"] = "activity"
    type: Annotated[str, Field(min_length=1, max_length=200)]
    task_queue: Annotated[str, Field(min_length=1, max_length=200)]
    timeout_seconds: Annotated[float, Field(gt=0, le=7 * 86_400)] = 600.0


class IngestInput(Payload):
    """Either `version_ids` already captured (what the facade passes), or one inline `document` with `principal_id`."""

    tenant_id: Id
    version_ids: VersionIds = []
    principal_id: Id | None = None
    document: AddFields | None = None
    idempotency_key: Annotated[str, Field(max_length=255)] | None = None
    captured_status: Literal["captured", "noop"] = "captured"
    """Carried from run to run of one ingest."""


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
    """One (version, processor) still to be run. `spec` None: no processor of that name is configured here."""

    version_id: Id
    processor: Id
    attempts: int = 0
    spec: ProcessorSpec | None = None


class PendingResult(Payload):
    """What remains to be done for the given versions, read from `derivation` and `process_request`, and how they stand.

    `document_id`, `version_id` are those of the first version; counts are over all.
    """

    embed: VersionIds = []
    process: Annotated[list[PendingProcess], Field(max_length=100)] = []
    document_id: Id | None = None
    version_id: Id | None = None
    chunks: int = 0
    embedded: int = 0
    failed: int = 0
    not_configured: int = 0
    claims: int = 0


class ProcessInput(Payload):
    """What a host's processor is given. It reads what it needs through the facade or the client.

    The message of an error that it raises is stored in the history of our workflow: it must not quote content.
    """

    tenant_id: Id
    version_id: Id
    processor: Id
    attempt: int = 1


class ProcessResult(Payload):
    """What a host's processor returns: `version_ids` of the claims it has written."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    outcome: Literal["skip", "poison", "written"]
    version_ids: VersionIds = []


class ProcessOutcome(Payload):
    """What became of one attempt; `failed` counts one, and the last one allowed quarantines the request."""

    tenant_id: Id
    version_id: Id
    processor: Id
    outcome: Literal["skip", "poison", "written", "failed"]
    claims: int = 0
    reason: Annotated[str, Field(max_length=300)] | None = None


class BeginProcess(Payload):
    """Claim an attempt of each for so long, so that nobody else begins one."""

    tenant_id: Id
    requests: Annotated[list[PendingProcess], Field(max_length=100)]


class ReembedInput(Payload):
    """`after` is where the walk goes on; the counts are those of the walk so far."""

    tenant_id: Id
    after: Id = ""
    embedded: int = 0
    failed: int = 0


class ReembedPlan(Payload):
    """The generation to fill, and how many versions of it lack vectors."""

    generation_id: Id
    total: int = 0


class ReembedPage(Payload):
    tenant_id: Id
    generation_id: Id
    after: Id = ""


class ReembedPageResult(Payload):
    after: Id = ""
    done: bool = False
    embedded: int = 0
    failed: int = 0
    pending: int = 0


class ReembedResult(Payload):
    embedded: int = 0
    failed: int = 0


class Count(Payload):
    count: int = 0


class ReconcileInput(Payload):
    older_than_seconds: int = 60
    limit: int = 5000


class ReconcileResult(Payload):
    ingests_started: int = 0
    keys_expired: int = 0
    retired: int = 0
    widenings_started: int = 0


class SweepInput(Payload):
    """One tenant, or all. `after` is the tenant up to which a sweep of all has come; `deprecated` what it has done."""

    tenant_id: Id | None = None
    after: Id = ""
    deprecated: int = 0


class SweepPageResult(Payload):
    after: Id = ""
    done: bool = False
    deprecated: int = 0


class SweepResult(Payload):
    deprecated: int = 0


class WidenInput(Payload):
    """An audience request, by its id; which tags it asks for is read from its row."""

    tenant_id: Id
    request_id: Id


class WidenDecision(Payload):
    """Who decides: the creator of the source's document, as the operator has authenticated him."""

    principal_id: Id


class WidenDecide(Payload):
    tenant_id: Id
    request_id: Id
    principal_id: Id
    approve: bool


class WidenStanding(Payload):
    """`gone`: the request went with its claim, which was forgotten or purged."""

    state: Literal["open", "approved", "declined", "gone"] = "open"
    tags: int = 0
    document_id: Id | None = None
    version_id: Id | None = None
    source_version_id: Id | None = None
