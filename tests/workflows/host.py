"""A host's own processors, as its worker would have them: they know our contracts and nothing else of us."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from memory_plane.contracts.workflows import ProcessInput, ProcessResult

QUEUE = "host"


@dataclass
class HostProcessors:
    """`answers` by version: a result, or the exception to raise. Without one: written, with one claim."""

    answers: dict[str, Any] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)

    @activity.defn(name="host_tag")
    async def tag(self, given: ProcessInput) -> Any:
        self.calls[given.version_id] += 1
        answer = self.answers.get(given.version_id, ProcessResult(outcome="written", version_ids=["kver_claim"]))
        if isinstance(answer, Exception):
            raise answer
        return answer


@workflow.defn(name="HostTagWorkflow")
class HostTagWorkflow:
    @workflow.run
    async def run(self, given: ProcessInput) -> ProcessResult:
        return ProcessResult(outcome="written", version_ids=["kver_a", "kver_b"])


@asynccontextmanager
async def host_worker(client: Client, processors: HostProcessors) -> AsyncIterator[None]:
    async with Worker(
        client,
        task_queue=QUEUE,
        activities=[processors.tag],
        workflows=[HostTagWorkflow],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        yield


def refusal(message: str) -> ApplicationError:
    return ApplicationError(message, type="HostFault")
