"""Who may do and see what: `memory token …`, `memory grant …`, `memory role …`, on the service's database."""

import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from memory_plane.cli.output import fail, out, print_json, print_table, usage
from memory_plane.cli.running import load_settings, run
from memory_plane.contracts.enums import GrantEffect, GrantOrigin, Verb
from memory_plane.contracts.errors import Unavailable

if TYPE_CHECKING:
    from memory_plane.core.grants import GrantRule
    from memory_plane.store.database import Connection
    from memory_plane.store.tokens import Token

T = TypeVar("T")

token = typer.Typer(no_args_is_help=True, help="Bearer tokens of the facade: issue, list, rotate, revoke.")
grant = typer.Typer(no_args_is_help=True, help="Grant rules: add, list, revoke.")
role = typer.Typer(no_args_is_help=True, help="Roles of principals: assign, remove, list.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Tenant = Annotated[str, typer.Option(help="The tenant.")]
Principal = Annotated[str, typer.Option(help="The principal.")]
SomePrincipal = Annotated[str | None, typer.Option(help="Of this principal only.")]
Expires = Annotated[str | None, typer.Option(help="30d, 12h, 90m, or a time with offset; without it, never.")]

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


def expiry(words: str | None, now: datetime) -> datetime | None:
    """`30d`, `12h`, `90m`, `45s` from now, or an ISO time with offset. Ends with exit code 2 for anything else."""
    if words is None:
        return None
    span = re.fullmatch(r"(\d{1,6})([dhms])", words.strip().lower())
    if span is not None:
        return now + timedelta(**{_UNITS[span[2]]: int(span[1])})
    try:
        moment = datetime.fromisoformat(words)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        usage("--expires takes 30d, 12h, 90m, or a time with an offset such as 2030-01-31T12:00:00+00:00.")
    if moment <= now:
        usage("--expires lies in the past; give a time to come.")
    return moment


def on_database(work: "Callable[[Connection], Awaitable[T]]") -> T:
    """Run `work` in one transaction on the database of the configuration; what fails ends as one sentence."""
    settings = load_settings()

    import asyncpg

    from memory_plane.store.database import open_pool, transaction

    async def within() -> T:
        pool = await open_pool(settings, max_size=1)
        try:
            async with transaction(pool) as conn:
                try:
                    return await work(conn)
                except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
                    raise Unavailable("The database has no memory tables yet; run `memory migrate` first.") from None
                except asyncpg.InsufficientPrivilegeError:
                    raise Unavailable(
                        "This database role may not do that; use the role that runs the migrations."
                    ) from None
        finally:
            pool.terminate()

    return run(within())


# --- tokens ---------------------------------------------------------------------------------------------------------


@token.command("issue")
def issue_token(
    tenant: Tenant,
    principal: Principal,
    expires: Expires = None,
    label: Annotated[str | None, typer.Option(help="What it is for, as in `token list`.")] = None,
    as_json: AsJson = False,
) -> None:
    """Issue a token. It is shown this once; only its hash is kept."""
    from memory_plane.store import tokens

    expires_at = expiry(expires, datetime.now(UTC))
    secret, issued = on_database(lambda conn: tokens.issue(conn, tenant, principal, label=label, expires_at=expires_at))
    _show_secret(secret, issued, as_json)


@token.command("rotate")
def rotate_token(
    token_id: Annotated[str, typer.Argument(help="The id of the token to replace, as `token list` shows it.")],
    overlap: Annotated[str, typer.Option(help="How long the old one is still good: 10m, 1h, 0s.")] = "10m",
    as_json: AsJson = False,
) -> None:
    """Issue a successor for the same principal and lifetime, and let the old token end."""
    from memory_plane.store import tokens

    now = datetime.now(UTC)
    until = expiry(overlap, now) or now
    secret, issued = on_database(lambda conn: tokens.rotate(conn, token_id, until - now))
    _show_secret(secret, issued, as_json)


@token.command("list")
def list_tokens(tenant: Tenant, principal: SomePrincipal = None, as_json: AsJson = False) -> None:
    """List the tokens of a tenant, without the tokens themselves."""
    from memory_plane.store import tokens

    rows = on_database(lambda conn: tokens.list_tokens(conn, tenant, principal))
    if as_json:
        print_json({"tokens": [_token_json(row) for row in rows]})
        return
    print_table(
        ("id", "principal", "label", "state", "expires", "last used"),
        [(row.id, row.principal_id, row.label, _state(row), row.expires_at, row.last_used_at) for row in rows],
        empty="This tenant has no tokens.",
    )


@token.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(help="The token's id, as `token list` shows it.")], as_json: AsJson = False
) -> None:
    """End a token now. Processes that know it forget it within seconds."""
    from memory_plane.store import tokens

    revoked = on_database(lambda conn: tokens.revoke(conn, token_id))
    if revoked is None:
        fail("There is no token of this id; `memory token list --tenant T` shows them.")
    if as_json:
        print_json(_token_json(revoked))
    else:
        out.print(f"revoked {revoked.id} of {revoked.principal_id}", markup=False)


def _show_secret(secret: str, issued: "Token", as_json: bool) -> None:
    if as_json:
        print_json({"token": secret, **_token_json(issued)})
        return
    out.print(secret, markup=False, highlight=False, soft_wrap=True)
    out.print(f"{issued.id}, expires {issued.expires_at or 'never'}; it is not shown again.", style="dim", markup=False)


def _state(row: "Token") -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if row.expires_at is not None and row.expires_at <= datetime.now(UTC) else "active"


def _token_json(row: "Token") -> dict[str, Any]:
    return {
        "id": row.id,
        "tenantId": row.tenant_id,
        "principalId": row.principal_id,
        "label": row.label,
        "state": _state(row),
        "createdAt": _iso(row.created_at),
        "expiresAt": _iso(row.expires_at),
        "lastUsedAt": _iso(row.last_used_at),
        "revokedAt": _iso(row.revoked_at),
    }


# --- grants ---------------------------------------------------------------------------------------------------------


@grant.command("add")
def add_grant(
    tenant: Tenant,
    resource: Annotated[
        str, typer.Option(help="memory for the verbs, or an access tag such as memory.space:eng; * is a wildcard.")
    ],
    action: Annotated[str, typer.Option(help="add, search, forget, purge, operate, or *.")],
    principal: Annotated[str | None, typer.Option(help="Who holds the rule; or --role.")] = None,
    role: Annotated[str | None, typer.Option(help="The role that holds the rule; or --principal.")] = None,
    effect: Annotated[GrantEffect, typer.Option(help="What the rule says.")] = GrantEffect.ALLOW,
    expires: Expires = None,
    conditions: Annotated[
        str | None, typer.Option(help='JSON, such as {"time_window": {"after": "09:00", "before": "17:00"}}.')
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add a grant rule; it acts on the next request."""
    from memory_plane.contracts.ids import IdKind, new_id
    from memory_plane.core.grants import GrantRule, matches
    from memory_plane.core.text import clean_text
    from memory_plane.store import grants

    if (principal is None) == (role is None):
        usage("A rule is held by either a principal or a role: give one of --principal and --role.")
    if not any(matches(action.strip(), verb.value) for verb in Verb):
        usage(
            f"There is no action {action.strip()!r}, so the rule would allow nothing: take one of "
            f"{', '.join(verb.value for verb in Verb)}, or * for all."
        )
    rule = GrantRule(
        id=new_id(IdKind.GRANT_RULE),
        principal_id=principal,
        role_id=role,
        resource=clean_text(resource.strip()),
        action=action.strip(),
        effect=effect,
        origin=GrantOrigin.SYSTEM if role is None else GrantOrigin.ROLE,
        conditions=_conditions(conditions),
        expires_at=expiry(expires, datetime.now(UTC)),
    )
    on_database(lambda conn: grants.put_rules(conn, tenant, [rule]))
    if as_json:
        print_json(_rule_json(tenant, rule))
    else:
        out.print(f"{rule.id}: {effect.value} {rule.action} on {rule.resource} for {principal or role}", markup=False)


@grant.command("list")
def list_grants(
    tenant: Tenant,
    principal: SomePrincipal = None,
    role: Annotated[str | None, typer.Option(help="Of this role only.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the rules of a tenant, a principal or a role."""
    from memory_plane.store import grants

    rules = on_database(lambda conn: grants.list_rules(conn, tenant, principal_id=principal, role_id=role))
    if as_json:
        print_json({"grants": [_rule_json(tenant, rule) for rule in rules]})
        return
    print_table(
        ("id", "holder", "effect", "action", "resource", "expires", "conditions"),
        [
            (
                rule.id,
                rule.principal_id or f"role {rule.role_id}",
                rule.effect.value,
                rule.action,
                rule.resource,
                rule.expires_at,
                ", ".join(rule.conditions or {}),
            )
            for rule in rules
        ],
        empty="There are no such rules.",
    )


@grant.command("revoke")
def revoke_grant(
    rule_id: Annotated[str, typer.Argument(help="The rule's id, as `grant list` shows it.")],
    tenant: Tenant,
    as_json: AsJson = False,
) -> None:
    """Remove a rule; it acts on the next request."""
    from memory_plane.store import grants

    if not on_database(lambda conn: grants.revoke_rule(conn, tenant, rule_id)):
        fail("This tenant has no rule of this id; `memory grant list --tenant T` shows them.")
    if as_json:
        print_json({"id": rule_id, "tenantId": tenant, "revoked": True})
    else:
        out.print(f"revoked {rule_id}", markup=False)


def _conditions(words: str | None) -> dict[str, Any] | None:
    """Parsed and judged once, so that a rule which could never apply is refused where it is written."""
    from memory_plane.core.conditions import SHIPPED_CONDITIONS, ConditionContext, ConditionProblem

    if words is None:
        return None
    try:
        parsed = json.loads(words)
        SHIPPED_CONDITIONS.holds(parsed, ConditionContext("", "", datetime.now(UTC)))
    except ValueError:
        usage('--conditions takes one JSON object, such as {"time_window": {"after": "09:00", "before": "17:00"}}.')
    except ConditionProblem as problem:
        usage(f"The rule would never apply: {problem}.")
    return dict(parsed)


def _rule_json(tenant: str, rule: "GrantRule") -> dict[str, Any]:
    return {
        "id": rule.id,
        "tenantId": tenant,
        "principalId": rule.principal_id,
        "roleId": rule.role_id,
        "resource": rule.resource,
        "action": rule.action,
        "effect": rule.effect.value,
        "origin": rule.origin.value,
        "conditions": rule.conditions,
        "expiresAt": _iso(rule.expires_at),
    }


# --- roles ----------------------------------------------------------------------------------------------------------


RoleName = Annotated[str, typer.Option(help="The role.")]


@role.command("assign")
def assign_role(tenant: Tenant, principal: Principal, role: RoleName, as_json: AsJson = False) -> None:
    """Give a principal a role, with all rules the role holds."""
    from memory_plane.store import grants

    changed = on_database(lambda conn: grants.assign_role(conn, tenant, principal, role))
    _show_role(tenant, principal, role, {"assigned": True, "changed": changed}, as_json)


@role.command("remove")
def remove_role(tenant: Tenant, principal: Principal, role: RoleName, as_json: AsJson = False) -> None:
    """Take a role from a principal."""
    from memory_plane.store import grants

    if not on_database(lambda conn: grants.remove_role(conn, tenant, principal, role)):
        fail("This principal does not have this role; `memory role list --tenant T` shows who has which.")
    _show_role(tenant, principal, role, {"assigned": False, "changed": True}, as_json)


@role.command("list")
def list_roles(tenant: Tenant, principal: SomePrincipal = None, as_json: AsJson = False) -> None:
    """List who has which role."""
    from memory_plane.store import grants

    rows = on_database(lambda conn: grants.list_roles(conn, tenant, principal))
    if as_json:
        print_json({"roles": [{"principalId": who, "roleId": which} for who, which in rows]})
    else:
        print_table(("principal", "role"), rows, empty="Nobody has a role.")


def _show_role(tenant: str, principal: str, role: str, outcome: dict[str, bool], as_json: bool) -> None:
    if as_json:
        print_json({"tenantId": tenant, "principalId": principal, "roleId": role, **outcome})
    else:
        out.print(f"{principal} {'has' if outcome['assigned'] else 'no longer has'} the role {role}", markup=False)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
