"""What a worker makes sure of at its start, and goes on trying where a neighbour is down."""

import asyncio
import logging

from memory_plane.contracts.errors import PlaneError, Unavailable
from memory_plane.models.errors import ModelUnusable
from memory_plane.plane.engine import Engine
from memory_plane.plane.recipe_drift import recipe_drift
from memory_plane.store import diagnosis
from memory_plane.store.database import StatementFailed, connection
from memory_plane.store.fts_language import verify_fts_language
from memory_plane.store.model_tables import build_index, index_is_valid
from memory_plane.store.vectors import tables_with_dims

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


async def broken_indexes_rebuilt(engine: Engine) -> None:
    """Build anew what a broken build has left invalid, for such an index costs every write and serves no read; and
    what a transform that was given up has filled and never indexed, unless another one is filling it."""
    try:
        async with connection(engine.pool) as conn:
            tables = await tables_with_dims(conn)
            filling = await diagnosis.tables_being_filled(conn)
            broken = [
                (table, dims)
                for table, dims in tables
                if (valid := await index_is_valid(conn, table)) is False or (valid is None and table not in filling)
            ]
        for table, dims in broken:
            # One that another process is building looks the same: its end is waited for, and it is left as it is.
            if await build_index(engine.settings.direct_dsn, table, dims, lambda progress: None):
                _log.info("the index of %s was invalid or missing, and has been built", table)
    except (PlaneError, StatementFailed) as fault:
        _log.warning("invalid indexes could not be looked after: %s", type(fault).__name__)


async def recipe_drift_told(engine: Engine) -> None:
    """Log where the configuration and the recipes that serve differ: what was changed in the environment alone has
    changed nothing."""
    try:
        async with connection(engine.pool) as conn:
            for sentence in await recipe_drift(conn, engine.settings):
                _log.warning("%s", sentence)
    except (PlaneError, StatementFailed) as fault:
        _log.warning("the recipes that serve could not be read: %s", type(fault).__name__)
