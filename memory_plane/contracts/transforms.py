"""Generations over Temporal: inputs and results of transforms and cutovers. Ids and counts, never content.

Versioned by addition only, as `contracts.workflows`.
"""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from memory_plane.contracts.enums import GenerationState, RunStatus
from memory_plane.contracts.workflows import Id, Payload, VersionIds

SENTENCE_CHARS = 1000
Sentence = Annotated[str, Field(max_length=SENTENCE_CHARS)]
Url = Annotated[str, Field(max_length=2000)]
Reasons = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=16)]

STARTED = "started"
"""What an accepted update answers; what comes of it is in the workflow's details and in the rows."""

TRANSFORM_DETAILS = (
    "Builds a generation of all memories under another recipe (chunking, embedding model, tuning) beside the one that "
    "serves, and takes its decisions here: promote, demote, discard, finalize. Current details say what comes next."
)
CUTOVER_DETAILS = (
    "Moves a tenant's searches and adds from one generation to another: catches up with what was added, then moves the "
    "pointer in one short transaction. Until then nothing has changed. Current details say how far it is."
)
"""What the Temporal UI shows of a workflow beside its state, whoever starts it."""

Cutting = Literal["promote", "demote"]
Decision = Literal["promote", "demote", "discard", "finalize", "retry_failures"]


class TransformScope(Payload):
    """Which raw captures a run derives from; by the time they were fetched, `until` exclusive. Empty: all."""

    adapter: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None

    @property
    def is_empty(self) -> bool:
        return self.adapter is None and self.since is None and self.until is None


class AutoPromote(Payload):
    """Floors that the review must meet for a run to be promoted without being asked.

    `min_rank_correlation` (-1 to 1) is left out by default: a better model ranks differently.
    """

    min_overlap: float = Field(0.5, ge=0.0, le=1.0)
    min_rank_correlation: float | None = Field(None, ge=-1.0, le=1.0)


class TransformInput(Payload):
    """`run_id` of a run there is, or `config_id` for a new one. `soak_hours` after a promote the run finalizes by
    itself; without it, when it is told to. `paused`, `retry_before` and `note` are carried from run to run of one
    workflow."""

    tenant_id: Id
    run_id: Id | None = None
    config_id: Id | None = None
    scope: TransformScope = TransformScope()
    auto_promote: AutoPromote | None = None
    soak_hours: float | None = Field(None, gt=0.0, le=24 * 365)
    paused: bool = False
    retry_before: AwareDatetime | None = None
    note: Sentence = ""


class RunRef(Payload):
    tenant_id: Id
    run_id: Id


class NewRun(Payload):
    tenant_id: Id
    run_id: Id
    config_id: Id
    scope: TransformScope = TransformScope()


class Review(Payload):
    """How a staged generation compares. `overlap` is the mean share of live's ten best that it finds among its own
    ten, `rank_correlation` Spearman's over what both found; None where there was too little to compare."""

    at: AwareDatetime
    versions: int
    chunks: int
    failures: int
    lag: int
    model: Annotated[str, Field(max_length=500)] | None = None
    endpoint: Url | None = None
    dims: int | None = None
    queries: int = 0
    overlap: float | None = None
    rank_correlation: float | None = None

    def meets(self, floors: AutoPromote) -> bool:
        if self.failures:
            return False
        if self.queries == 0:  # nothing is served: there is nothing to lose
            return True
        if self.overlap is None or self.overlap < floors.min_overlap:
            return False
        floor = floors.min_rank_correlation
        return floor is None or (self.rank_correlation is not None and self.rank_correlation >= floor)


class Standing(Payload):
    """How a run and its generation stand in Postgres. `archived` is the generation that its promote took down,
    `total` what was derivable when the walk began, `goal` the feed position at which that walk ends, `lag` how many
    positions lie above what it has walked."""

    tenant_id: Id
    run_id: Id
    state: GenerationState
    status: RunStatus
    versions: int = 0
    chunks: int = 0
    failed: int = 0
    pending: int = 0
    total: int = 0
    lag: int = 0
    goal: int | None = None
    scoped: bool = False
    error: Sentence | None = None
    model: Annotated[str, Field(max_length=500)] | None = None
    endpoint: Url | None = None
    archived: Id | None = None
    archived_state: GenerationState | None = None
    promoted_at: AwareDatetime | None = None
    review: Review | None = None


class StepInput(Payload):
    """One page of deriving into a generation, up to the feed position `upto` or to its end. `embed` False: chunks
    only. Failures from before `retry_before` are tried once more."""

    tenant_id: Id
    generation: Id
    upto: int | None = None
    embed: bool = True
    retry_before: AwareDatetime | None = None


class StepResult(Payload):
    """`behind` are feed positions still to be walked, `pending` derivations without vectors, `unsettled` those among
    them that have failed and are tried again, `retrying` failures still to be tried once more. The totals are the
    run's, where a run made the generation."""

    derived: int = 0
    chunks: int = 0
    embedded: int = 0
    failed: int = 0
    pending: int = 0
    unsettled: int = 0
    retrying: int = 0
    behind: int = 0
    walked_to: int = 0
    total_versions: int = 0
    total_chunks: int = 0
    total_failed: int = 0


class Reopened(Payload):
    """A failed run that goes on; `retry_before` is for its steps."""

    standing: Standing
    retry_before: AwareDatetime


class Decide(Payload):
    """May this be done with the run's generation now? What is read and refused before an update is answered."""

    tenant_id: Id
    run_id: Id
    decision: Decision
    allow_partial_dense: bool = False


class PromoteRequest(Payload):
    allow_partial_dense: bool = False
    """Also when the generation's model endpoint is gone or it has none: searches then match words alone."""


class DemoteRequest(PromoteRequest):
    allow_failed: bool = False
    """Also when versions will not derive into the generation that comes back; they are listed in the result."""


class CutoverInput(Payload):
    """`generation` is the one to promote, or the live one to demote."""

    tenant_id: Id
    generation: Id
    allow_partial_dense: bool = False
    allow_failed: bool = False
    plan: "CutPlan | None" = None
    """Carried from run to run of one cutover."""


class CutPlan(Payload):
    """A checked cutover: `target` takes over from `source`, which has been live since `source_since`. `embed` False:
    with lexical cover alone, as the operator allowed."""

    kind: Cutting
    tenant_id: Id
    target: Id
    source: Id
    source_since: AwareDatetime
    begun_at: AwareDatetime
    embed: bool = True
    allow_failed: bool = False
    lag: int = 0


class CheckInput(Payload):
    kind: Cutting
    cutover: CutoverInput


class CutResult(Payload):
    """`flipped` False: writers were too fast, `behind` positions are to be caught up with first."""

    flipped: bool
    stragglers: int = 0
    behind: int = 0
    milliseconds: float = 0.0
    """How long captures were kept out."""


class FailuresInput(Payload):
    tenant_id: Id
    generation: Id


class Failures(Payload):
    """What would not derive: the first of them, and how many in all."""

    count: int = 0
    version_ids: VersionIds = Field(default_factory=list)
    first_error: Sentence | None = None


class VerifyResult(Payload):
    """Whether a search of the live generation answers. `problem` says what did not, in a sentence."""

    verified: bool
    degraded: Reasons = Field(default_factory=list)
    problem: Sentence | None = None


class CutoverResult(Payload):
    """`live` serves now, `down` is the one that served before. Both are runs where a run made them."""

    kind: Cutting
    live: Id
    down: Id
    stragglers: int = 0
    stragglers_pending: int = 0
    failed: int = 0
    failed_version_ids: VersionIds = Field(default_factory=list)
    verified: bool = False
    problem: Sentence | None = None
    held_milliseconds: float = 0.0


class CutoverRunning(Payload):
    """The cutover of a tenant that is under way, if any."""

    kind: Cutting | None = None
    generation: Id | None = None


class RetireInput(Payload):
    tenant_id: Id
    generation: Id


class RetireResult(Payload):
    """`chunks` deleted, with their vectors."""

    generation: Id
    chunks: int = 0


class IndexInput(Payload):
    tenant_id: Id
    generation: Id


class IndexResult(Payload):
    """Whether an index was built; False where there was one, or the recipe has no model."""

    built: bool


class TransformResult(Payload):
    """How a run's workflow ended. `live`: it serves, and what it replaced has been deleted."""

    run_id: Id
    outcome: Literal["finalized", "discarded", "cancelled", "retired", "started"]
    workflow_id: Id | None = None


CutoverInput.model_rebuild()
