"""The facade behind a real HTTP server, in a thread with a loop of its own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The base URL of a server that runs this app, lifespan included."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        # The listener takes connections at once; the first answer comes when the app has started, or never.
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        listener.close()
