"""How memories end, for operators: `memory sweep`, `memory deprecate`, `memory erasure-report`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_plane.cli.access import on_database
from memory_plane.cli.output import fail, out, print_json, print_table
from memory_plane.cli.running import load_settings, run

if TYPE_CHECKING:
    from memory_plane.store.erasure_report import ErasureReport

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def sweep(
    tenant: Annotated[str | None, typer.Option(help="This tenant only; without it, all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Deprecate ephemeral versions that are past their time, now. The schedule does so each hour."""
    settings = load_settings()

    from memory_plane.plane.access import Access
    from memory_plane.plane.retention import Retention
    from memory_plane.store.database import open_pool

    async def all_of_it() -> int:
        pool = await open_pool(settings, max_size=2)
        try:
            return await Retention(pool, Access(None)).sweep(tenant)
        finally:
            pool.terminate()

    deprecated = run(all_of_it())
    if as_json:
        print_json({"deprecated": deprecated})
    else:
        out.print(f"{deprecated} versions deprecated." if deprecated else "Nothing is past its time.")


def deprecate(
    version_id: Annotated[str, typer.Argument(help="The version's id, kver_…")],
    tenant: Annotated[str, typer.Option(help="The tenant.")],
    reason: Annotated[str | None, typer.Option(help="Kept with the version.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take a version out of search; it stays readable, and findable with includeDeprecated."""
    settings = load_settings()

    from memory_plane.plane.access import Access
    from memory_plane.plane.retention import Retention
    from memory_plane.store.database import open_pool

    async def once() -> str:
        pool = await open_pool(settings, max_size=1)
        try:
            return await Retention(pool, Access(None)).deprecate(tenant, version_id, reason)
        finally:
            pool.terminate()

    status = run(once())
    if as_json:
        print_json({"versionId": version_id, "tenantId": tenant, "status": status})
    else:
        out.print(f"{version_id} is {status}", markup=False)


def erasure_report(
    document_id: Annotated[str, typer.Argument(help="The document's id, kdoc_…")], as_json: AsJson = False
) -> None:
    """Search every table for what is left of a document. Exit code 1 when anything it said is still there."""
    from memory_plane.store.erasure_report import erasure_report as search

    report = on_database(lambda conn: search(conn, document_id))
    if report is None:
        fail("No table has heard of this document; check the id, or that this is the right database.")
    if as_json:
        print_json(_as_json(report))
    else:
        _show(report)
    if not report.is_erased:
        raise typer.Exit(1)


def _as_json(report: "ErasureReport") -> dict[str, Any]:
    return {
        "documentId": report.document_id,
        "tenantId": report.tenant_id,
        "erased": report.is_erased,
        "versions": dict(report.statuses),
        "tables": [
            {
                "table": found.table,
                "rows": found.rows,
                "content": dict(found.content),
                "generations": dict(found.generations),
            }
            for found in report.tables
        ],
    }


def _show(report: "ErasureReport") -> None:
    rows = [
        (
            found.table,
            found.rows,
            ", ".join(f"{column} ({number})" for column, number in found.content.items()) or "none",
            ", ".join(f"{generation}: {number}" for generation, number in found.generations.items()),
        )
        for found in report.tables
    ]
    print_table(("table searched", "rows", "content found", "by generation"), rows)
    versions = ", ".join(f"{number} {status}" for status, number in report.statuses.items()) or "no version is left"
    verdict = "Nothing it said is left." if report.is_erased else "Some of what it said is still there."
    out.print(f"{report.document_id} of tenant {report.tenant_id}: {versions}. {verdict}", markup=False, soft_wrap=True)
