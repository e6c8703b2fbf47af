"""An embedding endpoint moves to another URL: the vectors there are stay right only if the same models answer there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory_plane.contracts.errors import Conflict, NotFound
from memory_plane.contracts.recipe import EmbedRecipe
from memory_plane.core.embed_text import SourceChunk, slots
from memory_plane.models.endpoint import Endpoint
from memory_plane.models.errors import BadReply, EndpointFault
from memory_plane.models.isolate import TextFault, Vector
from memory_plane.models.pool import ModelPool
from memory_plane.settings import Settings
from memory_plane.store import embed_models
from memory_plane.store.database import Connection, Pool, connection, in_transaction
from memory_plane.store.embed_models import EmbedModel, StoredSample

SAMPLES = 20
AGREEMENT = 0.99
"""Least cosine between a stored vector and the new endpoint's for the same text: above what quantization or another
runtime of one model does, below what two models of one family agree on."""


@dataclass(frozen=True, slots=True)
class Moved:
    """`models` moved, after so many of their stored vectors were `compared`; `rows` of the registry changed."""

    models: int
    compared: int
    rows: int


class EndpointMove:
    def __init__(self, pool: Pool, settings: Settings, models: ModelPool) -> None:
        self._pool = pool
        self._settings = settings
        self._models = models

    async def move(self, old_base_url: str, new_base_url: str) -> Moved:
        """Check that every model registered at the old URL answers the same at the new one, then write that down.

        Raises NotFound where none is registered, Conflict where one disagrees, EndpointFault where the new endpoint
        does not answer.
        """
        async with connection(self._pool) as conn:
            registered = await embed_models.models_at(conn, old_base_url)
        if not registered:
            raise NotFound(
                "No embedding model is registered at the old URL; see memory.embed_model for those that are."
            )
        compared = sum([await self._compare(model, new_base_url) for model in registered])

        async def work(conn: Connection) -> int:
            return await embed_models.move_endpoint(conn, old_base_url, new_base_url)

        return Moved(len(registered), compared, await in_transaction(self._pool, work))

    async def _compare(self, model: EmbedModel, new_base_url: str) -> int:
        async with connection(self._pool) as conn:
            samples = await embed_models.samples(conn, model.table, SAMPLES)
        endpoint = self._endpoint(model, new_base_url, samples)
        if await self._models.dims_of(endpoint) != model.dims:
            raise _disagrees(model)
        texts = [_text(sample) for sample in samples]
        try:
            outcomes = await self._models.embedder(endpoint, model.dims).embed_texts(texts)
        except BadReply:
            raise _disagrees(model) from None
        for sample, outcome in zip(samples, outcomes, strict=True):
            if isinstance(outcome, TextFault):
                raise EndpointFault(f"The new endpoint does not embed what the old one did: {outcome.reason}")
            if _cosine(sample.vector, outcome) < AGREEMENT:
                raise _disagrees(model)
        return len(samples)

    def _endpoint(self, model: EmbedModel, base_url: str, samples: Sequence[StoredSample]) -> Endpoint:
        recipe = samples[0].recipe if samples else self._settings.default_recipe().embed
        key = self._settings.secret(recipe.api_key_env) if recipe is not None else None
        return Endpoint(base_url, model.model, model.style.value, key, self._settings.embed_timeout_ms / 1000)


def _text(sample: StoredSample) -> str:
    """The text whose vector is stored, made as it was made then."""
    recipe: EmbedRecipe = sample.recipe
    return slots(recipe, SourceChunk("", sample.text, sample.context))[0].text


def _cosine(left: Vector, right: Vector) -> float:
    return float(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)))


def _disagrees(model: EmbedModel) -> Conflict:
    return Conflict(
        f"The model {model.model!r} answers other vectors at the new URL than those that are stored: it is another "
        "model. Nothing was changed; use a transform to go from one to the other.",
        code="model_changed",
    )
