"""Yesterday's histories on today's code."""

from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

import worker
from memory_plane.contracts import names
from memory_plane.contracts.workflows import IngestInput, IngestResult, VersionsInput
from memory_plane.temporal import DATA_CONVERTER
from tests.canaries import CANARY
from tests.replay.recording import HISTORIES
from tests.replay.replaying import replayer

CORPUS = sorted(HISTORIES.glob("*.json"))


def history(file: Path) -> WorkflowHistory:
    """Under the id it ran under: a cutover asks for its own."""
    text = file.read_text()
    started = WorkflowHistory.from_json(file.stem, text).events[0].workflow_execution_started_event_attributes
    return WorkflowHistory.from_json(started.workflow_id or file.stem, text)


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
async def test_inv_31_a_stored_history_replays(file: Path) -> None:
    await replayer().replay_workflow(history(file))


def test_inv_31_every_workflow_has_a_stored_history() -> None:
    recorded = set()
    for file in CORPUS:
        started = history(file).events[0].workflow_execution_started_event_attributes
        recorded.add(started.workflow_type.name)
    assert recorded >= {workflow._Definition.must_from_class(each).name for each in worker.WORKFLOWS}


def test_inv_30_stored_histories_hold_no_canary() -> None:
    def kept(file: Path) -> bytes:
        return b"".join(event.SerializeToString() for event in history(file).events)

    assert [file.stem for file in CORPUS if CANARY.encode() in kept(file)] == []


@workflow.defn(name=names.INGEST, sandboxed=False)
class _Changed:
    """The same workflow with its steps in another order, as a careless change would have it."""

    @workflow.run
    async def run(self, given: IngestInput) -> IngestResult:
        await workflow.execute_activity(
            "memory_embed",
            VersionsInput(tenant_id=given.tenant_id, version_ids=given.version_ids),
            task_queue=names.QUEUE_EMBED,
            start_to_close_timeout=timedelta(hours=1),
        )
        return IngestResult()

    @workflow.signal
    def nudge(self, more: VersionsInput) -> None: ...


async def test_a_change_of_order_would_be_caught() -> None:
    changed = Replayer(workflows=[_Changed], data_converter=DATA_CONVERTER)
    with pytest.raises(NondeterminismError):
        await changed.replay_workflow(history(HISTORIES / "ingest-embedded.json"))
