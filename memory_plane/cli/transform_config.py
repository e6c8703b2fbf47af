"""Recipes, for operators: `memory transform config …`."""

import json
import sys
from typing import Annotated

import typer

from memory_plane.cli.output import out, print_json, print_table, usage
from memory_plane.cli.running import on_engine

config = typer.Typer(no_args_is_help=True, help="Recipes by name and version.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Tenant = Annotated[str, typer.Option(help="The tenant.")]


@config.command("create")
def create_config(
    name: Annotated[str, typer.Argument(help="Its name; a name that exists gets its next version.")],
    tenant: Tenant,
    params: Annotated[
        str, typer.Option(help='The recipe as JSON, partial or whole: {"embed": {"model": "…"}}; - reads stdin.')
    ],
    as_json: AsJson = False,
) -> None:
    """Write down a recipe. What it leaves out comes from the engine's configuration when it is run."""
    try:
        given = json.loads(sys.stdin.read() if params == "-" else params)
    except ValueError as problem:
        usage(f"--params is not JSON: {problem}.")
    if not isinstance(given, dict):
        usage('--params must be a JSON object such as {"embed": {"model": "…"}}.')
    created = on_engine(lambda engine: engine.transforms.create_config(tenant, name, given))
    if as_json:
        print_json({"id": created.id, "name": created.name, "version": created.version})
    else:
        out.print(f"{created.id}  {created.name}, version {created.version}", markup=False, highlight=False)


@config.command("list")
def list_configs(tenant: Tenant, as_json: AsJson = False) -> None:
    """List a tenant's recipes."""
    found = on_engine(lambda engine: engine.transforms.configs(tenant))
    if as_json:
        print_json(
            {
                "configs": [
                    {
                        "id": each.id,
                        "name": each.name,
                        "version": each.version,
                        "params": each.params,
                        "createdAt": each.created_at,
                    }
                    for each in found
                ]
            }
        )
        return
    print_table(
        ("id", "name", "version", "params", "created"),
        [(each.id, each.name, each.version, json.dumps(each.params), each.created_at) for each in found],
        empty="This tenant has no recipes; memory transform config create makes one.",
    )


@config.command("delete")
def delete_config(
    config_id: Annotated[str, typer.Argument(help="The recipe's id, tcfg_….")], tenant: Tenant, as_json: AsJson = False
) -> None:
    """Delete a recipe that no run was made of."""
    on_engine(lambda engine: engine.transforms.delete_config(tenant, config_id))
    print_json({"id": config_id, "deleted": True}) if as_json else out.print(f"{config_id} is deleted.", markup=False)
