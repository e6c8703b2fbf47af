"""The worker's port: one scrape with ours and the SDK's metrics, and probes that tell alive from ready."""

import asyncio
import urllib.error
import urllib.request

from temporalio.client import Client

import worker
from memory_plane.contracts import names
from memory_plane.contracts.workflows import SweepInput
from memory_plane.dev.ports import free_port
from memory_plane.settings import Settings
from tests.eventually import eventually
from tests.observability.test_deploy import ONLY_AFTER_A_FAILURE, SDK


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, ""
    except OSError:
        return 0, ""


async def test_one_port_shows_metrics_and_answers_probes(configured: Settings, client: Client) -> None:
    port = free_port()
    settings = configured.model_copy(
        update={
            "temporal_address": client.service_client.config.target_host,
            "temporal_namespace": client.namespace,
            "memory_metrics_port": port,
        }
    )
    stop = asyncio.Event()
    serving = asyncio.create_task(worker.serve(settings, stop))

    async def answers(path: str) -> bool:
        return (await asyncio.to_thread(get, port, path))[0] == 200

    await eventually(lambda: answers("/readyz"), what="the worker to be ready")
    assert await answers("/healthz")
    await client.execute_workflow(names.SWEEP, SweepInput(), id="sweep", task_queue=names.QUEUE)
    _, shown = await asyncio.to_thread(get, port, "/metrics")
    assert "memory_embed_pending 0.0" in shown
    assert [name for name in SDK - ONLY_AFTER_A_FAILURE if name not in shown] == []
    assert (await asyncio.to_thread(get, port, "/elsewhere"))[0] == 404
    stop.set()
    await serving
    assert not await answers("/healthz")


async def test_without_temporal_it_is_alive_and_not_ready(configured: Settings) -> None:
    port = free_port()
    settings = configured.model_copy(
        update={"temporal_address": f"127.0.0.1:{free_port()}", "memory_metrics_port": port}
    )
    stop = asyncio.Event()
    serving = asyncio.create_task(worker.serve(settings, stop))

    async def alive() -> bool:
        return (await asyncio.to_thread(get, port, "/healthz"))[0] == 200

    await eventually(alive, what="the worker to be alive")
    assert (await asyncio.to_thread(get, port, "/readyz"))[0] == 503
    stop.set()
    await serving
