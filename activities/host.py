"""Activities on `memory` for host workflows of our own namespace. Their content is in the host's histories.

Inputs are the models of `contracts.hosting`, taken as they come and judged by the service: what is refused is refused
for good, and says why.
"""

from hashlib import sha256
from typing import Any

from temporalio import activity

from memory_plane.contracts import hosting
from memory_plane.contracts.wire import AddResponse, FeedResponse, ListResponse, SearchResponse
from memory_plane.plane.engine import Engine


class HostActivities:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @activity.defn(name=hosting.ACTIVITY_SEARCH)
    async def search(self, given: dict[str, Any]) -> SearchResponse:
        """HostSearch → SearchResponse. Idempotent: it writes nothing."""
        return await self._engine.hosting.search(given)

    @activity.defn(name=hosting.ACTIVITY_ADD)
    async def add(self, given: dict[str, Any]) -> AddResponse:
        """HostAdd → AddResponse. Idempotent: by the key given, or by one of this activity of this run."""
        info = activity.info()
        own = f"{info.workflow_id}\n{info.workflow_run_id}\n{info.activity_id}"
        return await self._engine.hosting.add(given, f"activity:{sha256(own.encode()).hexdigest()}")

    @activity.defn(name=hosting.ACTIVITY_LIST)
    async def list(self, given: dict[str, Any]) -> ListResponse:
        """HostList → ListResponse. Idempotent: it writes nothing."""
        return await self._engine.hosting.list(given)

    @activity.defn(name=hosting.ACTIVITY_FEED)
    async def feed(self, given: dict[str, Any]) -> FeedResponse:
        """HostFeed → FeedResponse. Idempotent: it writes nothing."""
        return await self._engine.hosting.feed(given)
