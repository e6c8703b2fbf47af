"""Configuration: one model over the environment and `.env`, validated at start, every problem at once."""

import json
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from memory_plane.contracts.enums import EmbedStyle, RerankStyle
from memory_plane.contracts.recipe import ChunkRecipe, EmbedRecipe, FusionRecipe, Recipe, RerankRecipe
from memory_plane.contracts.validation import field_errors
from memory_plane.contracts.workflows import ProcessorSpec
from memory_plane.core.base_url import normalize_base_url
from memory_plane.core.payload_keys import PayloadKeys

_FORMS = {
    "database_url": "must be set, in the environment or .env, to an address as in postgresql://user:password@host/name",
    "fts_language": "must be the name of a text search configuration of PostgreSQL, as in english",
    "memory_codec_token": "must have at least 16 characters",
    "distill_agent": "must be 1 to 100 letters, digits, dots, dashes and underscores",
}


class SettingsInvalid(Exception):
    """The environment does not make a configuration; the message lists every problem, one a line."""


class PayloadSettings(BaseSettings):
    """What the codec server needs, which has no database."""

    model_config = SettingsConfigDict(env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True)

    memory_payload_keys: SecretStr | None = None
    """Encrypts what goes through Temporal: `id:base64,…`; the first key writes, all read."""
    memory_codec_token: SecretStr | None = Field(None, min_length=16)

    @field_validator("memory_payload_keys")
    @classmethod
    def _are_keys(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            PayloadKeys.parse(value.get_secret_value())
        return value

    @property
    def payload_keys(self) -> PayloadKeys | None:
        return (
            None if self.memory_payload_keys is None else PayloadKeys.parse(self.memory_payload_keys.get_secret_value())
        )

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """From the environment and `.env`; raises SettingsInvalid naming every problem at once."""
        try:
            return cls(**overrides)
        except ValidationError as error:
            raise SettingsInvalid(_sentences(error)) from None


class Settings(PayloadSettings):
    """The effective configuration of one process. Secrets are `SecretStr` and never printed."""

    database_url: SecretStr
    db_pool_max: int = Field(8, ge=1, le=200)
    db_statement_timeout_ms: int = Field(15_000, ge=100)
    db_pgbouncer: bool = False
    """Behind PgBouncer in transaction mode: no prepared-statement cache, no session settings at connect."""
    database_direct_url: SecretStr | None = None
    """Past PgBouncer, for the worker's DDL: index builds hold a lock of their session."""
    fts_language: str = Field("english", pattern=r"^[a-z_]{1,63}$")

    embed_base_url: str | None = None
    embed_model: str | None = None
    embed_api_style: EmbedStyle = EmbedStyle.OPENAI
    embed_api_key: SecretStr | None = None
    embed_timeout_ms: int = Field(10_000, ge=100, le=600_000)
    embed_batch_size: int = Field(32, ge=1, le=2048)
    embed_max_input_tokens: int | None = Field(None, ge=32, le=65_536)
    embed_inline_budget_ms: int = Field(2_000, ge=0, le=30_000)

    rerank_base_url: str | None = None
    rerank_model: str = "bge-reranker-v2-m3"
    rerank_api_style: RerankStyle = RerankStyle.TEI
    rerank_api_key: SecretStr | None = None
    rerank_max_doc_chars: int | None = Field(None, ge=200, le=100_000)
    rerank_timeout_ms: int = Field(3_000, ge=50, le=60_000)

    search_deadline_ms: int = Field(5_000, ge=100, le=60_000)

    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "default"
    temporal_tls: bool = False
    temporal_api_key: SecretStr | None = None

    memory_auth: Literal["token", "jwt", "gateway", "custom"] | None = None
    memory_caller_resolver: str | None = Field(None, description="package.module:callable, for MEMORY_AUTH=custom")
    memory_jwt_jwks: str | None = Field(None, description="URL or file of the JWKS, for MEMORY_AUTH=jwt")
    memory_jwt_issuer: str | None = None
    memory_jwt_audience: str | None = None
    memory_jwt_tenant_claim: str = "tenant_id"
    memory_jwt_principal_claim: str = "sub"
    memory_gateway_secret: SecretStr | None = None
    memory_gateway_tenant_header: str = "x-memory-tenant"
    memory_gateway_principal_header: str = "x-memory-principal"

    distill_base_url: str | None = None
    distill_model: str | None = None
    distill_api_key: SecretStr | None = None
    distill_timeout_ms: int = Field(60_000, ge=100, le=600_000)
    distill_tenants: Annotated[list[str], NoDecode] = []
    """The tenants that a schedule distils; `memory setup distiller` gives the principal its grants in one."""
    distill_principal: str = Field("distiller", min_length=1)
    """As whom the distiller reads and writes: it sees what the grants of this principal allow."""
    distill_agent: str = Field("distiller", pattern=r"^[A-Za-z0-9._-]{1,100}$")
    """The generator id of its claims, and the first part of their external_ref."""
    distill_processor: Annotated[ProcessorSpec | None, NoDecode] = None
    """A host's own processor, in place of the chat endpoint."""
    distill_claims: bool = False
    """Whether claims of others are distilled too; two distillers that do so feed each other."""
    distill_every_seconds: int = Field(300, ge=10, le=86_400)

    memory_mcp_allow_forget: bool = False
    """Whether the MCP tools at /mcp include memory_forget."""

    memory_processors: Annotated[dict[str, ProcessorSpec], NoDecode] = {}
    """What `process` may ask for, by name: {"tagger": {"kind": "activity", "type": …, "task_queue": …}} as JSON."""

    memory_embeds_per_second: float | None = Field(None, gt=0)
    """How many embed activities all workers together begin a second; None: as many as there are."""

    memory_requests_per_second: float | None = Field(None, gt=0)
    """How often one caller may ask one API process; beyond it 429. None: without a limit."""
    memory_requests_burst: int | None = Field(None, ge=1, le=1_000_000)
    memory_requests_at_once: int = Field(256, ge=1, le=100_000)
    """How many requests one API process answers at a time; beyond it 503."""

    memory_metrics_port: int | None = Field(None, ge=0, le=65_535)
    memory_log_level: Literal["debug", "info", "warning", "error"] = "info"
    memory_build_id: str | None = None
    """With a build id the worker runs under Worker Versioning; the deploy step sets the current version."""

    @field_validator("distill_tenants", "distill_processor", "memory_processors", mode="before")
    @classmethod
    def _from_json(cls, value: Any) -> Any:
        # Here and not in the settings' source, which would end the start with a traceback at the first of them.
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise ValueError("must be JSON") from None

    @field_validator("database_url", "database_direct_url")
    @classmethod
    def _is_postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("must be an address as in postgresql://user:password@host/name")
        return value

    @field_validator("embed_base_url", "rerank_base_url", "distill_base_url")
    @classmethod
    def _one_spelling(cls, value: str | None) -> str | None:
        return None if value is None else normalize_base_url(value)

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if (self.embed_base_url is None) != (self.embed_model is None):
            raise ValueError("EMBED_BASE_URL and EMBED_MODEL go together: set both, or neither for lexical-only")
        if (self.distill_base_url is None) != (self.distill_model is None):
            raise ValueError("DISTILL_BASE_URL and DISTILL_MODEL go together: set both, or neither for no distiller")
        return self

    def masked(self) -> dict[str, Any]:
        """The effective values, secrets as `***`."""
        return {
            name.upper(): "***" if isinstance(value, SecretStr) else value
            for name, value in ((name, getattr(self, name)) for name in type(self).model_fields)
        }

    @property
    def distills(self) -> bool:
        """Whether there is anything to distil with."""
        return self.distill_processor is not None or self.distill_base_url is not None

    @property
    def direct_dsn(self) -> str:
        """Where DDL goes: a session of its own, not through transaction pooling."""
        return (self.database_direct_url or self.database_url).get_secret_value()

    def secret(self, name: str | None) -> str | None:
        """The secret that a recipe names by `api_key_env`: from this configuration, `.env` included, or from the
        environment; None where it names none."""
        if name is None:
            return None
        own = getattr(self, name.lower(), None)
        return own.get_secret_value() if isinstance(own, SecretStr) else secret_from(os.environ, name)

    def default_recipe(self) -> Recipe:
        """What a tenant's first generation is made from."""
        embed = None
        if self.embed_base_url is not None and self.embed_model is not None:
            embed = EmbedRecipe(
                base_url=self.embed_base_url,
                model=self.embed_model,
                style=self.embed_api_style,
                api_key_env="EMBED_API_KEY" if self.embed_api_key else None,
                max_input_tokens=self.embed_max_input_tokens,
            )
        rerank = None
        if self.rerank_base_url is not None:
            rerank = RerankRecipe(
                base_url=self.rerank_base_url,
                model=self.rerank_model,
                style=self.rerank_api_style,
                api_key_env="RERANK_API_KEY" if self.rerank_api_key else None,
                max_doc_chars=self.rerank_max_doc_chars,
            )
        return Recipe(chunk=ChunkRecipe(), embed=embed, rerank=rerank, fusion=FusionRecipe())


def _sentences(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)
    lines = []
    for each in field_errors(found):
        name, _, within = each.field.partition(".")
        message = _FORMS.get(each.field, each.message)
        lines.append(" ".join(part for part in (name.upper(), within, message) if part))
    return "\n".join(lines)


def secret_from(environment: Mapping[str, str], name: str | None) -> str | None:
    """The secret that a recipe names by `api_key_env`; None where it names none."""
    return environment.get(name) if name else None
