"""The typed Python client of the facade; needs httpx, pydantic and tenacity, and nothing of the service.

    from memory_plane.client import MemoryClient
    memory = MemoryClient("http://127.0.0.1:8080", tenant="dev", token="…")
    memory.add("Standup", "We ship on Friday."); print(memory.search("when do we ship?").items[0].snippet)

`AsyncMemoryClient` has the same methods to await. Both retry what is safe to repeat, with the server's Retry-After
in mind, and give each add an idempotency key, so that a retry never makes a second document. Refusals arrive as the
typed errors of `memory_plane.contracts.errors`: `NotFound`, `Forbidden`, `Invalid` with `.errors`, `Unavailable`, …
"""

from memory_plane.client.asynchronous import AsyncMemoryClient
from memory_plane.client.calls import AddOptions, Document, SearchOptions
from memory_plane.client.sync import MemoryClient

__all__ = ["AddOptions", "AsyncMemoryClient", "Document", "MemoryClient", "SearchOptions"]
