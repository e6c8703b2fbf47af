"""A recipe: how a generation is derived and how it is searched. Stored as JSON with camelCase keys.

A partial recipe inherits what it leaves out from the engine's configuration (`Recipe.merged_over`).
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from memory_plane.contracts.enums import EmbedStyle, RerankStyle

MIN_DIMS = 64
MAX_DIMS = 4000


class RecipeModel(BaseModel):
    """Refuses unknown keys by name: a mistyped knob must not be silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class ChunkRecipe(RecipeModel):
    """Caps in tokens of the default estimate (about four characters each in alphabetic scripts).

    The default fits, with its context, into the 256 tokens of common small models, and is what an agent can read ten
    of: measured better than 700 with windows, see docs/decisions (retrieval).
    """

    strategy: Literal["token.recursive"] = "token.recursive"
    max_tokens: int = Field(220, ge=16, le=8192)
    min_tokens: int = Field(40, ge=0, le=4096)
    overlap_tokens: int = Field(30, ge=0, le=2048)

    @model_validator(mode="after")
    def _caps_fit(self) -> Self:
        if self.min_tokens > self.max_tokens // 2 or self.overlap_tokens > self.max_tokens // 2:
            raise ValueError("minTokens and overlapTokens must each be at most half of maxTokens")
        return self


class EmbedRecipe(RecipeModel):
    """Which endpoint embeds, and what text it is given.

    `api_key_env` names an environment variable of the worker and API; a secret is never stored.
    `context` puts the chunk's context (title, date, …) before its text. `max_input_tokens` is the model's own
    input limit; a chunk longer than it is embedded as windows (slots 1…n) beside its head.
    """

    base_url: str
    model: str
    style: EmbedStyle = EmbedStyle.OPENAI
    api_key_env: str | None = None
    context: bool = True
    neighbours: bool = False
    max_input_tokens: int | None = Field(None, ge=32, le=65_536)


class RerankRecipe(RecipeModel):
    base_url: str
    model: str = "bge-reranker-v2-m3"
    style: RerankStyle = RerankStyle.TEI
    api_key_env: str | None = None
    max_doc_chars: int | None = Field(None, ge=200, le=100_000)


class FusionRecipe(RecipeModel):
    """`adaptive`: weighted sum of normalized channel scores, the weights of each query by how much either channel tells
    its best hit from the crowd; `convex`: the same weights for all; `rrf`: reciprocal rank fusion with constant `k`.

    `neighbour_weight` is the share of a chunk's neighbourhood vector in its dense score, where the recipe embeds one.
    `surroundings_weight` is the share of its score, above the ordinary, that a document lends to those captured right
    before and after it.
    """

    method: Literal["adaptive", "convex", "rrf"] = "adaptive"
    lexical_weight: float = Field(0.45, ge=0.0, le=1.0)
    neighbour_weight: float = Field(0.0, ge=0.0, le=1.0)
    surroundings_weight: float = Field(0.5, ge=0.0, le=1.0)
    k: int = Field(60, ge=1, le=1000)
    lexical: Literal["bm25", "idf", "and"] = "bm25"


class Recipe(RecipeModel):
    chunk: ChunkRecipe = ChunkRecipe()
    embed: EmbedRecipe | None = None
    rerank: RerankRecipe | None = None
    fusion: FusionRecipe = FusionRecipe()
    authority_weight: float = Field(0.5, ge=0.0, le=1.0)
    recency_half_life_days: float = Field(30.0, gt=0.0, le=36_500.0)
    mmr_lambda: float = Field(1.0, ge=0.0, le=1.0)
    overfetch: Annotated[int, Field(ge=3, le=10)] = 5
    history: bool = False

    @classmethod
    def merged_over(cls, partial: dict[str, Any], base: "Recipe") -> "Recipe":
        """`partial` (camelCase or snake_case keys, nested objects partial too) laid over `base`.

        What is inherited yields to what is given: caps shrink to fit a smaller chunk, and the key of one endpoint is
        not sent to another.
        """
        merged = base.model_dump(by_alias=True)
        for key, value in partial.items():
            name = to_camel(key)
            below = merged.get(name)
            if isinstance(value, dict) and isinstance(below, dict):
                given = {to_camel(inner): item for inner, item in value.items()}
                merged[name] = _inherited(name, below, given) | given
            else:
                merged[name] = value
        return cls.model_validate(merged)

    def stored(self) -> dict[str, Any]:
        """The JSON that a row holds."""
        return self.model_dump(mode="json", by_alias=True)


def _inherited(name: str, below: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What of `below` is to be inherited beside what is given."""
    if name == "chunk" and isinstance(given.get("maxTokens"), int):
        half = given["maxTokens"] // 2
        return below | {cap: min(below[cap], half) for cap in ("minTokens", "overlapTokens")}
    if name in ("embed", "rerank") and given.get("baseUrl", below["baseUrl"]) != below["baseUrl"]:
        return below | {"apiKeyEnv": None}
    return below
