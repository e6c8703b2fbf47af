"""From the start of the process to the first request it may serve: the engine, and a database that fits it."""

import asyncio
import logging
from contextlib import suppress

from memory_plane.contracts.errors import Unavailable
from memory_plane.plane.engine import Engine
from memory_plane.store.database import StatementFailed, connection
from memory_plane.store.fts_language import FtsLanguageMismatch, verify_fts_language

RETRY_SECONDS = 1.0

_log = logging.getLogger("memory_plane.api")


class CannotStart(Exception):
    """The process must not serve as it is configured; the message says what to do."""


class Serving:
    """Holds the engine back until the database's FTS language is known to be the configured one.

    A database that is down at the start is waited for: the process stays alive and not ready, as orchestrators
    expect of a part whose neighbour restarts. A database that answers and does not fit stops the start.
    """

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._verified = False
        self._waiting: asyncio.Task[None] | None = None

    def engine(self) -> Engine:
        if self._engine is None or not self._verified:
            raise Unavailable(
                "The service has started and its database is not there yet; /readyz says what is missing. Try again.",
                code="starting",
                retry_after=2,
            )
        return self._engine

    async def begin(self, engine: Engine) -> None:
        """Raises CannotStart."""
        self._engine = engine
        try:
            await self._verify(engine)
        except Unavailable:
            _log.warning("the database cannot be reached; serving begins once it is there")
            self._waiting = asyncio.create_task(self._verify_when_back(engine))
        except FtsLanguageMismatch as mismatch:
            raise CannotStart(str(mismatch)) from None
        except StatementFailed as refused:
            raise CannotStart(
                f"The database refused us with {refused}; check DATABASE_URL and the role's rights."
            ) from None

    async def end(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            with suppress(asyncio.CancelledError):
                await self._waiting
        self._engine = None

    async def _verify(self, engine: Engine) -> None:
        async with connection(engine.pool) as conn:
            await verify_fts_language(conn, engine.settings.fts_language)
        self._verified = True

    async def _verify_when_back(self, engine: Engine) -> None:
        told = ""
        while not self._verified:
            await asyncio.sleep(RETRY_SECONDS)
            try:
                await self._verify(engine)
            except Unavailable:
                continue
            except (FtsLanguageMismatch, StatementFailed) as refusal:
                if str(refusal) != told:
                    _log.error("the database is there and cannot be served from: %s", refusal)
                told = str(refusal)
