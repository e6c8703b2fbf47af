"""`memory doctor`: look at every part, say what is wrong and what to do about it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import asyncpg
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.service import RPCError

from memory_plane.contracts import names
from memory_plane.models.embed import EmbedClient, probe_dims
from memory_plane.models.endpoint import Endpoint, http_client
from memory_plane.models.errors import EndpointFault, ModelUnusable
from memory_plane.plane.recipe_drift import recipe_drift
from memory_plane.settings import Settings
from memory_plane.store import diagnosis
from memory_plane.store.database import Connection, open_pool
from memory_plane.store.fts_language import FtsLanguageMismatch, verify_fts_language
from memory_plane.store.migrate import MigrationFailed, pending
from memory_plane.temporal import connect, trouble

State = Literal["ok", "warn", "fail"]

OLD_BACKLOG_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Finding:
    part: str
    state: State
    message: str


@dataclass
class Report:
    findings: list[Finding] = field(default_factory=list)
    embed_pending: int | None = None
    """Of all tenants; None where the database did not tell."""
    embed_failed: int | None = None

    @property
    def healthy(self) -> bool:
        return all(finding.state != "fail" for finding in self.findings)

    def note(self, part: str, state: State, message: str) -> None:
        self.findings.append(Finding(part, state, message))

    def as_json(self) -> dict[str, Any]:
        return {
            "healthy": self.healthy,
            "embed": {"pending": self.embed_pending, "failed": self.embed_failed},
            "findings": [
                {"part": finding.part, "state": finding.state, "message": finding.message} for finding in self.findings
            ],
        }


async def examine(settings: Settings, migrations: Path) -> Report:
    """Every part in turn. A part that is down is a finding, never an exception."""
    report = Report()
    await _database(settings, migrations, report)
    await _temporal(settings, report)
    await _embedding(settings, report)
    _rerank(settings, report)
    return report


async def _database(settings: Settings, migrations: Path, report: Report) -> None:
    try:
        async with _connection(settings) as connection:
            server, pgvector = await diagnosis.versions(connection)
            report.note("database", "ok", f"PostgreSQL {server}, pgvector {pgvector or 'missing'}")
            if await _migrated(connection, migrations, report):
                await _language(connection, settings, report)
                await _derivations(connection, report)
                await _recipes(connection, settings, report)
                await _indexes(connection, report)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as problem:
        report.note("database", "fail", f"It cannot be used ({type(problem).__name__}); check DATABASE_URL.")


async def _migrated(connection: Connection, migrations: Path, report: Report) -> bool:
    try:
        missing = await pending(connection, migrations)
    except MigrationFailed as refusal:
        report.note("migrations", "fail", str(refusal))
        return False
    if missing:
        report.note("migrations", "fail", f"{len(missing)} not applied; run memory migrate.")
        return False
    report.note("migrations", "ok", "All are applied.")
    return True


async def _language(connection: Connection, settings: Settings, report: Report) -> None:
    try:
        await verify_fts_language(connection, settings.fts_language)
    except FtsLanguageMismatch as refusal:
        report.note("fts language", "fail", str(refusal))
    else:
        report.note("fts language", "ok", f"The index is built with {settings.fts_language}.")


async def _derivations(connection: Connection, report: Report) -> None:
    waiting = await diagnosis.backlog(connection)
    report.embed_pending, report.embed_failed = waiting.pending, waiting.failed
    if waiting.failed:
        report.note("embedding", "warn", f"{waiting.failed} versions would not embed; memory reembed tries them again.")
    if waiting.not_configured:
        report.note(
            "embedding",
            "warn",
            f"{waiting.not_configured} versions were captured without an endpoint; memory reembed fills them in.",
        )
    if waiting.oldest_seconds is not None and waiting.oldest_seconds > OLD_BACKLOG_SECONDS:
        report.note(
            "embedding",
            "warn",
            f"{waiting.pending} versions wait, the oldest for {waiting.oldest_seconds / 60:.0f} minutes; "
            "check that the worker runs and that the endpoint answers.",
        )


async def _recipes(connection: Connection, settings: Settings, report: Report) -> None:
    for sentence in await recipe_drift(connection, settings):
        report.note("live recipe", "warn", sentence)


async def _indexes(connection: Connection, report: Report) -> None:
    broken = await diagnosis.invalid_indexes(connection)
    if broken:
        report.note(
            "indexes",
            "fail",
            f"{', '.join(broken)} was left invalid by a failed build; restart a worker to rebuild it.",
        )


async def _temporal(settings: Settings, report: Report) -> None:
    try:
        client = await connect(settings)
        response = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=settings.temporal_namespace)
        )
    except (RPCError, RuntimeError) as problem:
        report.note(
            "temporal",
            "fail",
            f"{trouble(settings, problem)} Meanwhile adds still work and are ingested later.",
        )
        return
    wanted = (names.ATTRIBUTE_TENANT, names.ATTRIBUTE_GENERATION, names.ATTRIBUTE_STAGE)
    missing = [name for name in wanted if name not in response.custom_attributes]
    if missing:
        report.note("temporal", "fail", f"Search attributes {', '.join(missing)} are missing; run memory setup.")
    else:
        report.note("temporal", "ok", f"{settings.temporal_address}, namespace {settings.temporal_namespace}.")


async def _embedding(settings: Settings, report: Report) -> None:
    if settings.embed_base_url is None or settings.embed_model is None:
        report.note(
            "embed endpoint", "warn", "None is configured: search is lexical only. Set EMBED_BASE_URL and EMBED_MODEL."
        )
        return
    key = settings.embed_api_key.get_secret_value() if settings.embed_api_key else None
    async with http_client() as http:
        try:
            endpoint = Endpoint(
                settings.embed_base_url,
                settings.embed_model,
                settings.embed_api_style.value,
                key,
                settings.embed_timeout_ms / 1000,
            )
            dims = await probe_dims(EmbedClient(http, endpoint))
        except (EndpointFault, ModelUnusable, ValueError) as fault:
            report.note("embed endpoint", "fail", str(fault))
        else:
            report.note("embed endpoint", "ok", f"{settings.embed_model} answers with {dims} dimensions.")


def _rerank(settings: Settings, report: Report) -> None:
    if settings.rerank_base_url is None:
        report.note("rerank endpoint", "ok", "None is configured: the fused order is final.")
    else:
        report.note("rerank endpoint", "ok", f"{settings.rerank_model} at {settings.rerank_base_url}.")


@asynccontextmanager
async def _connection(settings: Settings) -> AsyncIterator[Connection]:
    pool = await open_pool(settings, max_size=1)
    try:
        async with pool.acquire(timeout=5) as connection:
            yield connection
    finally:
        pool.terminate()
