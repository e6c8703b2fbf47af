"""Inputs and results of the distiller: ids, positions and counts."""

from typing import Annotated, Literal

from pydantic import Field

from memory_plane.contracts.workflows import Id, Payload, ProcessorSpec


class DistillCounts(Payload):
    """What a distiller has done: entries by their outcome, and the claims they were written as."""

    written: int = 0
    skipped: int = 0
    quarantined: int = 0
    claims: int = 0


class DistillerInput(Payload):
    """`tick` drains the feed and ends; `resident` stays, and looks again on a nudge or after `idle_seconds`.

    `done` is carried from run to run.
    """

    tenant_id: Id
    agent_id: Id
    mode: Literal["tick", "resident"] = "tick"
    idle_seconds: Annotated[float, Field(gt=0)] = 60.0
    done: DistillCounts = DistillCounts()


class DistillerResult(DistillCounts):
    """`drained` False: the model endpoint, or the database, was away; the next run goes on from there."""

    drained: bool = True


class DistillNext(Payload):
    tenant_id: Id
    agent_id: Id


class DistillEntry(Payload):
    """One version to distil. `position` is its own in the feed and `after` where the cursor must stand for it to be
    the next; without them it is one that was quarantined and is driven again."""

    version_id: Id
    position: int | None = None
    after: int = 0


class DistillPage(Payload):
    """What comes next, in order. `processor` None: the ready-made one. `drained`: nothing more was there."""

    entries: Annotated[tuple[DistillEntry, ...], Field(max_length=200)] = ()
    drained: bool = True
    processor: ProcessorSpec | None = None


class DistillOne(Payload):
    tenant_id: Id
    agent_id: Id
    entry: DistillEntry


class DistillOutcome(Payload):
    """`moved`: another distiller has done this entry, and nothing was written. `unavailable`: the endpoint or the
    database is away, which is no fault of the entry."""

    outcome: Literal["written", "skip", "moved", "unavailable"]
    claims: int = 0


class DistillSettle(Payload):
    """How an entry that was processed elsewhere ended; `poison` and `failed` put it into quarantine with `reason`."""

    tenant_id: Id
    agent_id: Id
    entry: DistillEntry
    outcome: Literal["written", "skip", "poison", "failed"]
    claims: int = 0
    attempts: int = 1
    reason: Annotated[str, Field(max_length=300)] | None = None
