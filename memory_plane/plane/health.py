"""Whether this process can serve: each part it talks to with its state, asked briefly and all at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from memory_plane.contracts.errors import Unavailable
from memory_plane.plane.recipe_drift import recipe_drift
from memory_plane.settings import Settings
from memory_plane.store.database import Pool, StatementFailed, connection
from memory_plane.store.fts_language import FtsLanguageMismatch, verify_fts_language
from memory_plane.telemetry.metrics import silent_searches

_CHANNEL = {"embed": "dense", "rerank": "rerank"}
State = Literal["up", "down", "mismatch", "not_configured"]

PATIENCE = 2.0
"""Seconds for one part to show that it is there."""
KEPT_FOR = 5.0
"""Seconds an endpoint's state is kept: probes come often, and an endpoint is asked for nothing but a connection."""

RECIPES_KEPT_FOR = 60.0
MOST_DRIFTS = 3
"""Recipes that differ and are named; `memory doctor` names all."""
NOTICED_AFTER = 20
"""Searches in a row without an endpoint's part in them, until readiness says so."""


@dataclass(frozen=True, slots=True)
class Part:
    """`required`: without it no request can be served. `detail` says what to do, where that is known."""

    state: State
    required: bool = False
    detail: str | None = None

    @property
    def stops_service(self) -> bool:
        return self.required and self.state != "up"


@dataclass
class Health:
    """`temporal` raises OSError or TimeoutError when the server cannot be reached; None where nothing is started."""

    pool: Pool
    settings: Settings
    temporal: Callable[[], Awaitable[None]] | None = None
    _kept: dict[str, tuple[float, Part]] = field(default_factory=dict)

    async def check(self) -> Mapping[str, Part]:
        """Every part; a part that is down is a state, never an error."""
        (database, language), recipes, temporal, embed, rerank = await asyncio.gather(
            self._database(),
            self._recipes(),
            self._temporal(),
            self._endpoint("embed", self.settings.embed_base_url),
            self._endpoint("rerank", self.settings.rerank_base_url),
        )
        return {
            "database": database,
            "fts_language": language,
            "live_recipes": recipes,
            "temporal": temporal,
            "embed": embed,
            "rerank": rerank,
        }

    async def _database(self) -> tuple[Part, Part]:
        down = Part("down", required=True, detail="The database does not answer; check it and DATABASE_URL.")
        try:
            async with asyncio.timeout(PATIENCE), connection(self.pool) as conn:
                await verify_fts_language(conn, self.settings.fts_language)
        except FtsLanguageMismatch as mismatch:
            return Part("up", required=True), Part("mismatch", required=True, detail=str(mismatch))
        except (Unavailable, TimeoutError, StatementFailed):
            return down, Part("down", required=True, detail="It cannot be read while the database is down.")
        return Part("up", required=True), Part("up", required=True)

    async def _recipes(self) -> Part:
        """Whether the recipes that serve are the configured one; all tenants are looked at, so not often."""
        now = time.monotonic()
        kept = self._kept.get("recipes")
        if kept is not None and kept[0] >= now:
            return kept[1]
        try:
            async with asyncio.timeout(PATIENCE), connection(self.pool) as conn:
                drift = await recipe_drift(conn, self.settings)
        except (Unavailable, TimeoutError, StatementFailed):
            return Part("down", detail="They cannot be read while the database is down.")
        part = Part("mismatch", detail=" ".join(drift[:MOST_DRIFTS])) if drift else Part("up")
        self._kept["recipes"] = (now + RECIPES_KEPT_FOR, part)
        return part

    async def _temporal(self) -> Part:
        if self.temporal is None:
            return Part("not_configured")
        try:
            async with asyncio.timeout(PATIENCE):
                await self.temporal()
        except (OSError, TimeoutError):
            return Part("down", detail="Adds are kept and ingested once it is back; check TEMPORAL_ADDRESS.")
        return Part("up")

    async def _endpoint(self, name: str, base_url: str | None) -> Part:
        if base_url is None:
            return Part("not_configured")
        now = time.monotonic()
        kept = self._kept.get(name)
        if kept is None or kept[0] < now:
            kept = (now + KEPT_FOR, await self._connect(base_url))
            self._kept[name] = kept
        silent = silent_searches[_CHANNEL[name]]
        if kept[1].state == "up" and silent >= NOTICED_AFTER:
            return Part("up", detail=f"The last {silent} searches here had nothing from it; their `degraded` says why.")
        return kept[1]

    async def _connect(self, base_url: str) -> Part:
        url = urlsplit(base_url)
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            async with asyncio.timeout(PATIENCE):
                _, writer = await asyncio.open_connection(url.hostname, port)
        except (OSError, TimeoutError):
            return Part("down", detail="Nothing listens there; what needs it answers `degraded`.")
        writer.close()
        return Part("up")
