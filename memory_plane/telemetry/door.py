"""The worker's own port: metrics, alive, ready. The API has the same three as routes."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.error import URLError
from urllib.request import urlopen

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from memory_plane.telemetry.metrics import REGISTRY

PATIENCE = 2.0
"""Seconds for the loop, and for Temporal, to show that they are there."""

Ready = Callable[[], Awaitable[bool]]


def free_port() -> int:
    """A port of the loopback interface that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def opened(port: int, ready: Ready, sdk_port: int | None = None) -> Iterator[int]:
    """Serve on all interfaces until left, from a thread of its own so that a loop that hangs is seen to hang.

    Yields the port. `sdk_port` is where the Temporal SDK shows its metrics on the loopback interface: one scrape
    answers both. Raises OSError for a port that is taken.
    """
    loop = asyncio.get_running_loop()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, generate_latest(REGISTRY) + _sdk_metrics(sdk_port), CONTENT_TYPE_LATEST)
            elif self.path == "/healthz":
                self._state(_asked(loop, _alive))
            elif self.path == "/readyz":
                self._state(_asked(loop, ready))
            else:
                self._answer(404, b"", "text/plain")

        def _state(self, well: bool) -> None:
            self._answer(200 if well else 503, b"ok\n" if well else b"no\n", "text/plain")

        def _answer(self, status: int, body: bytes, media_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A probe each few seconds is nothing to tell."""

    server = ThreadingHTTPServer(("0.0.0.0", port), Handler)  # noqa: S104 - probes come from outside of the container
    server.daemon_threads = True
    Thread(target=server.serve_forever, name="memory-door", daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


async def _alive() -> bool:
    return True


def _asked(loop: asyncio.AbstractEventLoop, question: Ready) -> bool:
    async def answer() -> bool:
        async with asyncio.timeout(PATIENCE):
            return await question()

    try:
        return asyncio.run_coroutine_threadsafe(answer(), loop).result(PATIENCE + 0.5)
    except (TimeoutError, RuntimeError):
        return False


def _sdk_metrics(port: int | None) -> bytes:
    if port is None:
        return b""
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
            text: bytes = answer.read()
            return text
    except (URLError, TimeoutError):
        return b""
