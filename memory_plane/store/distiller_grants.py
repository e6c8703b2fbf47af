"""The ordinary grants with which a distiller reads and writes."""

from collections.abc import Sequence

from memory_plane.contracts.enums import GrantEffect, GrantOrigin, Verb
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.names import CAPABILITY_RESOURCE
from memory_plane.core.access_tags import tenant_tag
from memory_plane.core.grants import GrantRule
from memory_plane.store.database import Connection
from memory_plane.store.grants import list_rules, put_rules


async def allow_distiller(conn: Connection, tenant_id: str, principal_id: str, tags: Sequence[str] = ()) -> list[str]:
    """Let this principal search and add, and see what is shared with the tenant or carries one of `tags` (globs may
    be given); the resources it was not yet allowed. What it holds already is left as it is, a denial included."""
    wanted = [
        (CAPABILITY_RESOURCE, Verb.SEARCH),
        (CAPABILITY_RESOURCE, Verb.ADD),
        (tenant_tag(tenant_id), Verb.SEARCH),
        *((tag, Verb.SEARCH) for tag in tags),
    ]
    held = {(rule.resource, rule.action) for rule in await list_rules(conn, tenant_id, principal_id=principal_id)}
    missing = [(resource, verb) for resource, verb in dict.fromkeys(wanted) if (resource, verb.value) not in held]
    await put_rules(
        conn,
        tenant_id,
        [
            GrantRule(
                id=new_id(IdKind.GRANT_RULE),
                principal_id=principal_id,
                role_id=None,
                resource=resource,
                action=verb.value,
                effect=GrantEffect.ALLOW,
                origin=GrantOrigin.SYSTEM,
            )
            for resource, verb in missing
        ],
    )
    return [f"{resource}:{verb.value}" for resource, verb in missing]
