"""The registry of embedding models: which endpoint serves one, how long its vectors are, and which table holds them.

A model's key is computed once, when it is first registered, and never again: the row keeps where the endpoint is
now, so an endpoint may move. So (base_url, model) is looked up here before a key is computed anywhere.
"""

import hashlib
from dataclasses import dataclass

import asyncpg
import numpy as np

from memory_plane.contracts.enums import EmbedStyle
from memory_plane.contracts.errors import Conflict, Invalid
from memory_plane.contracts.recipe import EmbedRecipe
from memory_plane.core.base_url import normalize_base_url
from memory_plane.store.database import Connection
from memory_plane.store.vectors import Vector, checked_table, column_type, embedding_table, index_sql, table_sql

ENGINE = ""
"""The tenant of the engine's own row: the configured model, there before any tenant has come."""

_REGISTRY_LOCK = 0x6D656D6F7279656D  # "memoryem"
_COLUMNS = "tenant_id, model_key, base_url, model, style, dims, table_name"


@dataclass(frozen=True, slots=True)
class EmbedModel:
    """One row of the registry. `base_url` is where the endpoint is now, whatever a recipe once said."""

    tenant_id: str
    model_key: str
    base_url: str
    model: str
    style: EmbedStyle
    dims: int
    table: str


@dataclass(frozen=True, slots=True)
class ModelProbe:
    """What a probe of an endpoint has found out, to be registered."""

    base_url: str
    model: str
    style: EmbedStyle
    dims: int


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A chunk with its stored vector, and the recipe under which its text was made."""

    text: str
    context: str
    vector: Vector
    recipe: EmbedRecipe


def model_key(base_url: str, model: str, attempt: int = 0) -> str:
    """The key to register under; a later attempt where an endpoint that has moved away holds the first."""
    name = f"{base_url}|{model}" if attempt == 0 else f"{base_url}|{model}|{attempt}"
    return hashlib.sha256(name.encode()).hexdigest()[:16]


async def model_for(conn: Connection, tenant_id: str, base_url: str, model: str) -> EmbedModel | None:
    """The tenant's model at this endpoint, else the engine's own; None where it was never registered."""
    row = await conn.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM memory.embed_model
        WHERE tenant_id IN ($1, '') AND base_url = $2 AND model = $3
        ORDER BY tenant_id DESC, created_at LIMIT 1
        """,  # noqa: S608 - constants
        tenant_id,
        normalize_base_url(base_url),
        model,
    )
    return _model(row) if row is not None else None


async def model_by_key(conn: Connection, tenant_id: str, key: str) -> EmbedModel | None:
    """The model that a generation was made with, by the key its row holds."""
    row = await conn.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM memory.embed_model
        WHERE tenant_id IN ($1, '') AND model_key = $2 ORDER BY tenant_id DESC LIMIT 1
        """,  # noqa: S608 - constants
        tenant_id,
        key,
    )
    return _model(row) if row is not None else None


async def register(conn: Connection, tenant_id: str, probe: ModelProbe, *, indexed: bool = True) -> EmbedModel:
    """The tenant's row for the probed model, with its table, made where they are missing.

    Inside a transaction on a session of its own (see `store.model_tables`): the table's foreign key locks `chunk`
    against writers. `indexed` makes the HNSW index at once, right for a table to be filled by adds; a transform
    fills the table first. Raises Conflict where the endpoint's vectors have another length than once registered.
    """
    await conn.execute("SELECT pg_advisory_xact_lock($1)", _REGISTRY_LOCK)
    column_type(probe.dims)
    known = await model_for(conn, tenant_id, probe.base_url, probe.model)
    if known is None:
        known = await _elsewhere(conn, probe)
    if known is not None and known.dims != probe.dims:
        raise Conflict(
            f"The model {probe.model!r} now answers vectors of {probe.dims} dimensions and was registered with "
            f"{known.dims}: another model is served under its name. Serve it under a name of its own.",
            code="model_changed",
        )
    if known is not None and known.tenant_id == tenant_id:
        return known
    key = known.model_key if known is not None else await _free_key(conn, probe)
    table = embedding_table(key)
    if not await conn.fetchval("SELECT to_regclass('memory.' || $1::text) IS NOT NULL", table):
        for statement in table_sql(table, probe.dims):
            await conn.execute(statement)
        if indexed:
            await conn.execute(index_sql(table, probe.dims, concurrently=False))
    row = await conn.fetchrow(
        f"""
        INSERT INTO memory.embed_model ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING {_COLUMNS}
        """,  # noqa: S608 - constants
        tenant_id,
        key,
        normalize_base_url(probe.base_url),
        probe.model,
        probe.style.value,
        probe.dims,
        table,
    )
    return _model(row)


async def models_at(conn: Connection, base_url: str) -> list[EmbedModel]:
    """The models registered at an endpoint, each once, whichever tenants have them."""
    rows = await conn.fetch(
        f"SELECT DISTINCT ON (model_key) {_COLUMNS} FROM memory.embed_model WHERE base_url = $1 ORDER BY model_key",  # noqa: S608 - constants
        normalize_base_url(base_url),
    )
    return [_model(row) for row in rows]


async def samples(conn: Connection, table: str, limit: int) -> list[StoredSample]:
    """Some chunks with their vectors, of any tenant."""
    rows = await conn.fetch(
        f"""
        SELECT c.text, c.context, e.embedding, g.recipe -> 'embed' AS recipe
        FROM memory.{checked_table(table)} e
        JOIN memory.chunk c ON c.id = e.chunk_id
        JOIN memory.version v ON v.id = c.version_id AND v.status <> 'tombstoned'
        JOIN memory.generation g ON g.id = c.generation_id AND g.recipe -> 'embed' ->> 'model' IS NOT NULL
        WHERE e.slot = 0 LIMIT $1
        """,  # noqa: S608 - the name is checked
        limit,
    )
    return [
        StoredSample(
            row["text"],
            row["context"],
            row["embedding"].to_numpy().astype(np.float32),
            EmbedRecipe.model_validate(row["recipe"]),
        )
        for row in rows
    ]


async def move_endpoint(conn: Connection, old_base_url: str, new_base_url: str) -> int:
    """Write down that what was served at one base URL is served at another; the number of rows changed.

    Whether the same models answer there is checked before (`plane.endpoint_move`). Raises Conflict where one of them
    is registered at the new URL already.
    """
    old, new = normalize_base_url(old_base_url), normalize_base_url(new_base_url)
    await conn.execute("SELECT pg_advisory_xact_lock($1)", _REGISTRY_LOCK)
    taken = await conn.fetchval(
        """
        SELECT count(*) FROM memory.embed_model a JOIN memory.embed_model b USING (tenant_id, model)
        WHERE a.base_url = $1 AND b.base_url = $2
        """,
        old,
        new,
    )
    if taken:
        raise Conflict(
            "A model of the old endpoint is registered at the new one already, with vectors of its own; "
            "use a transform to go from one to the other.",
            code="endpoint_taken",
        )
    await _pin_generations(conn, old)
    status: str = await conn.execute(
        "UPDATE memory.embed_model SET base_url = $2, updated_at = clock_timestamp() WHERE base_url = $1", old, new
    )
    return int(status.rpartition(" ")[2])


async def _pin_generations(conn: Connection, base_url: str) -> None:
    """Give generations that find their model by its URL its key, before the URL changes under them."""
    rows = await conn.fetch(
        """
        SELECT id, tenant_id, recipe -> 'embed' ->> 'baseUrl' AS base_url, recipe -> 'embed' ->> 'model' AS model
        FROM memory.generation
        WHERE model_key IS NULL AND recipe -> 'embed' ->> 'model' IS NOT NULL AND state <> 'retired'
        """
    )
    for row in rows:
        if normalize_base_url(row["base_url"]) != base_url:
            continue
        known = await model_for(conn, row["tenant_id"], base_url, row["model"])
        if known is not None:
            await pin_generation(conn, row["tenant_id"], row["id"], known)


async def pin_generation(conn: Connection, tenant_id: str, generation_id: str, model: EmbedModel) -> None:
    """Write down with which model a generation is derived, unless that is settled."""
    await conn.execute(
        """
        UPDATE memory.generation SET model_key = $3, dims = $4
        WHERE tenant_id = $1 AND id = $2 AND model_key IS NULL
        """,
        tenant_id,
        generation_id,
        model.model_key,
        model.dims,
    )


async def _elsewhere(conn: Connection, probe: ModelProbe) -> EmbedModel | None:
    """Another tenant's row for the same model: its key, dims and table are everybody's."""
    row = await conn.fetchrow(
        f"SELECT {_COLUMNS} FROM memory.embed_model WHERE base_url = $1 AND model = $2 ORDER BY created_at LIMIT 1",  # noqa: S608 - constants
        normalize_base_url(probe.base_url),
        probe.model,
    )
    return _model(row) if row is not None else None


async def _free_key(conn: Connection, probe: ModelProbe) -> str:
    """The computed key, unless a model that has moved away was registered under it."""
    base_url = normalize_base_url(probe.base_url)
    for attempt in range(100):
        key = model_key(base_url, probe.model, attempt)
        if not await conn.fetchval("SELECT EXISTS (SELECT FROM memory.embed_model WHERE model_key = $1)", key):
            return key
    raise Invalid("This model has been registered and moved away too many times; clean up memory.embed_model.")


def _model(row: asyncpg.Record | None) -> EmbedModel:
    assert row is not None  # noqa: S101 - INSERT … RETURNING answers one row
    return EmbedModel(
        tenant_id=row["tenant_id"],
        model_key=row["model_key"],
        base_url=row["base_url"],
        model=row["model"],
        style=EmbedStyle(row["style"]),
        dims=row["dims"],
        table=checked_table(row["table_name"]),
    )
