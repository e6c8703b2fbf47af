"""How the stack runs the programs of this repository: endpoint, worker, API, and the one-off setup."""

import sys
from collections.abc import Mapping
from pathlib import Path

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from memory_plane.contracts.names import QUEUE, QUEUE_BULK, QUEUE_EMBED
from memory_plane.dev.checkout import checkout
from memory_plane.dev.child import Child, Command
from memory_plane.dev.data_dir import DataDir
from memory_plane.dev.errors import StackError
from memory_plane.dev.parts import Probe, Program, answers
from memory_plane.dev.ports import HOST

ENDPOINT_MODEL = "all-MiniLM-L6-v2"
ENDPOINT_MAX_TOKENS = 256

_POLLED = (
    (QUEUE, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW),
    (QUEUE, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY),
    (QUEUE_EMBED, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY),
    (QUEUE_BULK, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY),
)


class Programs:
    """Builds the parts for one data directory. `environment` is all that a program gets to see of ours."""

    def __init__(self, data_dir: DataDir, environment: Mapping[str, str]) -> None:
        self._data_dir = data_dir
        # The directory of the data, not of the checkout: a `.env` there is for other ways to run the service.
        self._environment = {**environment, "PYTHONPATH": str(checkout()), "PYTHONUNBUFFERED": "1"}

    def endpoint(self, port: int, *, rerank: bool) -> Program:
        arguments = ["-m", "memory_plane.dev.endpoint", "--port", str(port)]
        if rerank:
            arguments.append("--rerank")
        command = self._command("endpoint", *arguments)
        return Program("The local model endpoint", command, answers(port, "/health"), speaks=True)

    def api(self, port: int, environment: Mapping[str, str]) -> Program:
        command = self._command(
            "api",
            *("-m", "uvicorn", "api.app:app_from_environment", "--factory"),
            *("--host", HOST, "--port", str(port)),
            *("--no-access-log", "--no-server-header", "--timeout-graceful-shutdown", "5"),
            environment=environment,
        )
        return Program("The API", command, answers(port, "/readyz"))

    def worker(self, environment: Mapping[str, str], client: Client) -> Program:
        command = self._command("worker", str(checkout() / "worker.py"), environment=environment)
        return Program("The worker", command, polls(client))

    async def setup(self, environment: Mapping[str, str]) -> None:
        """Search attributes and schedules, by the same command that an operator runs."""
        command = self._command("setup", "-m", "memory_plane.cli.main", "setup", environment=environment)
        child = await Child.start(command)
        try:
            code = await child.wait()
        finally:
            await child.stop()
        if code != 0:
            raise StackError(f"Temporal did not take the search attributes and schedules; see {command.log}.")

    def log(self, name: str) -> Path:
        return self._data_dir.logs() / f"{name}.log"

    def _command(self, name: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Command:
        return Command(
            name=name,
            argv=(sys.executable, *arguments),
            log=self.log(name),
            cwd=self._data_dir.path,
            env={**self._environment, **(environment or {})},
            trace=self._data_dir.trace(name),
        )


def polls(client: Client) -> Probe:
    """Ready when Temporal has seen this very process poll every queue."""

    async def probe(child: Child) -> bool:
        try:
            for name, kind in _POLLED:
                queue = await client.workflow_service.describe_task_queue(
                    DescribeTaskQueueRequest(
                        namespace=client.namespace, task_queue=TaskQueue(name=name), task_queue_type=kind
                    )
                )
                if not any(poller.identity.startswith(f"{child.pid}@") for poller in queue.pollers):
                    return False
        except RPCError:
            return False
        return True

    return probe


def endpoint_variables(port: int, *, rerank: bool) -> dict[str, str]:
    """The configuration that makes the local model endpoint the engine's."""
    url = f"http://{HOST}:{port}"
    variables = {
        "EMBED_BASE_URL": url,
        "EMBED_MODEL": ENDPOINT_MODEL,
        "EMBED_API_STYLE": "openai",
        "EMBED_API_KEY": "",
        "EMBED_MAX_INPUT_TOKENS": str(ENDPOINT_MAX_TOKENS),
    }
    if rerank:
        variables |= {"RERANK_BASE_URL": url, "RERANK_API_STYLE": "tei", "RERANK_API_KEY": ""}
    return variables
