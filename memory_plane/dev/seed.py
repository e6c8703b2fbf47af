"""What a fresh development stack begins with: the schema, and one principal who may do everything."""

from dataclasses import dataclass
from pathlib import Path

import asyncpg

from memory_plane.contracts.enums import GrantEffect, GrantOrigin
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.names import CAPABILITY_RESOURCE
from memory_plane.core.grants import GrantRule
from memory_plane.dev.errors import StackError
from memory_plane.store import tokens
from memory_plane.store.database import Connection
from memory_plane.store.fts_language import FtsLanguageMismatch
from memory_plane.store.grants import list_rules, put_rules
from memory_plane.store.migrate import MigrationFailed, migrate

TENANT = "dev"
PRINCIPAL = "dev"
ACTIONS = ("add", "search", "forget", "purge", "operate")


async def migrated(dsn: str, fts_language: str, directory: Path) -> None:
    """Bring the database up to date; raises StackError."""
    try:
        await migrate(dsn, fts_language, directory)
    except (MigrationFailed, FtsLanguageMismatch) as refusal:
        raise StackError(str(refusal)) from refusal
    except (OSError, asyncpg.PostgresError, ValueError) as failure:
        # The type alone: a driver's message may quote the connection string.
        raise StackError(
            f"The database does not take a connection ({type(failure).__name__}); "
            "check DATABASE_URL, or unset it to start one here."
        ) from None


@dataclass(frozen=True, slots=True)
class Seed:
    """The token in force, and whether it was issued now."""

    token: str
    fresh: bool


async def seeded(dsn: str, kept: str | None) -> Seed:
    """The kept token if the database still takes it, else a new one; rules are seeded with a new one only.

    So a rule that someone revokes to see what happens stays revoked over a restart.
    """
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction():
            if kept is not None and await tokens.resolve(connection, kept) is not None:
                return Seed(kept, fresh=False)
            await _allow_everything(connection)
            token, _ = await tokens.issue(connection, TENANT, PRINCIPAL, label="memory dev")
            return Seed(token, fresh=True)
    finally:
        await connection.close()


async def _allow_everything(connection: Connection) -> None:
    held = {
        rule.action
        for rule in await list_rules(connection, TENANT, principal_id=PRINCIPAL)
        if rule.resource == CAPABILITY_RESOURCE
    }
    rules = [
        GrantRule(
            id=new_id(IdKind.GRANT_RULE),
            principal_id=PRINCIPAL,
            role_id=None,
            resource=CAPABILITY_RESOURCE,
            action=action,
            effect=GrantEffect.ALLOW,
            origin=GrantOrigin.SYSTEM,
        )
        for action in ACTIONS
        if action not in held
    ]
    await put_rules(connection, TENANT, rules)
