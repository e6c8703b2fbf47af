"""What a worker makes sure of at its start, and goes on trying where a neighbour is down."""

import asyncio
import logging

from memory_plane.contracts.errors import PlaneError, Unavailable
from memory_plane.models.errors import ModelUnusable
from memory_plane.plane.engine import Engine
from memory_plane.store.database import StatementFailed, connection
from memory_plane.store.fts_language import verify_fts_language

_log = logging.getLogger(__name__)

LONGEST_PAUSE = 60.0


async def database_fits(engine: Engine) -> bool:
    """Whether the database is there and its text index has the configured language; FtsLanguageMismatch if another."""
    try:
        async with connection(engine.pool) as conn:
            await verify_fts_language(conn, engine.settings.fts_language)
    except Unavailable:
        _log.warning("the database cannot be reached; trying again")
        return False
    except StatementFailed:
        _log.warning("the database is not migrated yet, or cannot be read; trying again (memory migrate)")
        return False
    return True


async def engine_model_registered(engine: Engine) -> None:
    """Register the configured embedding model, trying until its endpoint answers. Never fails the start."""
    pause = 1.0
    while True:
        try:
            model = await engine.embedding.ensure_engine_model()
        except ModelUnusable as refusal:
            _log.error("the configured embedding model cannot be used: %s", refusal.detail)
            return
        except (PlaneError, StatementFailed) as fault:
            detail = fault.detail if isinstance(fault, PlaneError) else str(fault)
            _log.warning("the embedding model is not registered yet: %s Trying again in %.0f s.", detail, pause)
        else:
            if model is not None:
                _log.info("embedding model registered: %d dimensions, table %s", model.dims, model.table)
            return
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
