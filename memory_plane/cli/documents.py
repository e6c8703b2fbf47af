"""The facade as a person uses it: add, search, list, feed, get, forget, purge."""

import re
import sys
from typing import Annotated, Any

import typer
from rich.text import Text

from memory_plane.cli.output import out, print_json, print_table, usage
from memory_plane.client import MemoryClient
from memory_plane.contracts.errors import Invalid

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DocumentId = Annotated[str, typer.Argument(metavar="DOCUMENT", help="A document id, kdoc_…")]


def client() -> MemoryClient:
    """From MEMORY_API, MEMORY_TENANT and MEMORY_TOKEN; raises Invalid naming those that are missing."""
    return MemoryClient.from_environment()


def add(
    title: Annotated[str, typer.Argument(help="At most 500 characters.")],
    text: Annotated[str | None, typer.Argument(help="The text; left out or '-' reads standard input.")] = None,
    kind: Annotated[str, typer.Option(help="What sort of document it is.")] = "note",
    ref: Annotated[
        str | None, typer.Option(help="A stable name of yours; adding it again makes a new version.")
    ] = None,
    adapter: Annotated[str, typer.Option(help="The name space of --ref.")] = "http",
    tag: Annotated[list[str] | None, typer.Option(help="An access tag such as memory.space:eng; repeatable.")] = None,
    share_tenant: Annotated[
        bool, typer.Option("--share-tenant", help="Share with all who may search the tenant.")
    ] = False,
    share_with: Annotated[list[str] | None, typer.Option(help="A principal to share with; repeatable.")] = None,
    occurred_at: Annotated[str | None, typer.Option(help="ISO 8601 with an offset.")] = None,
    attribute: Annotated[list[str] | None, typer.Option(help="name=value; repeatable.")] = None,
    retention: Annotated[str | None, typer.Option(help="durable, standard, ephemeral or source_only.")] = None,
    wait: Annotated[str | None, typer.Option(help="captured, embedded or processed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Add one document."""
    body: dict[str, Any] = {"kind": kind, "adapter": adapter}
    optional = {
        "external_ref": ref,
        "access_tags": tag or None,
        "occurred_at": occurred_at,
        "retention_class": retention,
        "wait": wait,
        "attributes": _attributes(attribute),
    }
    body |= {name: value for name, value in optional.items() if value is not None}
    if share_tenant or share_with:
        body["share"] = {"tenant": share_tenant, "principals": share_with or []}
    if text is None or text == "-":
        text = sys.stdin.read()
    with client() as memory:
        added = memory.add(title, text, **body)
    if as_json:
        print_json(added)
        return
    out.print(f"{added.status} {added.document_id} (version {added.version_id})", soft_wrap=True)
    if added.degraded:
        out.print(f"degraded: {', '.join(added.degraded)}", style="yellow")


def search(
    query: Annotated[str, typer.Argument(help='Words or a question; "quoted" and -negated words are honoured.')] = "",
    limit: Annotated[int, typer.Option(min=1, max=50)] = 8,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    adapter: Annotated[list[str] | None, typer.Option(help="Only from this adapter; repeatable.")] = None,
    attribute: Annotated[list[str] | None, typer.Option(help="Only where name=value; repeatable.")] = None,
    as_of: Annotated[
        str | None, typer.Option(help="Answer from what was known then (ISO 8601 with an offset).")
    ] = None,
    generation: Annotated[
        str | None, typer.Option(help="A staged or archived generation (needs memory:operate).")
    ] = None,
    deprecated: Annotated[bool, typer.Option("--deprecated", help="Deprecated versions too.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="How each hit was ranked (needs memory:operate).")] = False,
    as_json: AsJson = False,
) -> None:
    """Find documents."""
    options: dict[str, Any] = {"limit": limit, "include_deprecated": deprecated}
    given = {
        "kinds": kind or None,
        "adapters": adapter or None,
        "attributes": _attributes(attribute),
        "as_of": as_of,
        "generation": generation,
        "explain": explain or None,
    }
    options |= {name: value for name, value in given.items() if value is not None}
    with client() as memory:
        found = memory.search(query, **options)
    if as_json:
        print_json(found)
        return
    if not found.items:
        out.print("Nothing found.", style="dim")
    for rank, item in enumerate(found.items, 1):
        head = Text(f"{rank:>2}. ").append(item.title, style="bold").append(f"  {item.score:.3f}", style="dim")
        out.print(head)
        out.print(Text("    ").append_text(highlighted(item.snippet, query)))
        out.print(
            Text(
                f"    {item.kind} · {item.citation.adapter}:{item.citation.external_ref} · {item.document_id}",
                style="dim",
            )
        )
    if found.evidence is not None:
        out.print(f"evidence: {found.evidence.value}", style="dim")
    if found.degraded:
        out.print(f"degraded: {', '.join(found.degraded)}", style="yellow")


def highlighted(snippet: str, query: str) -> Text:
    """The snippet on one line, with the query's words marked."""
    text = Text(" ".join(snippet.split()))
    words = [word for word in re.findall(r"\w+", query) if len(word) > 2]
    if words:
        pattern = r"(?i)\b(" + "|".join(re.escape(word) for word in words) + r")\w{0,3}\b"
        text.highlight_regex(pattern, style="bold yellow")
    return text


def list_documents(
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    cursor: Annotated[str | None, typer.Option(help="Where the last page ended.")] = None,
    as_json: AsJson = False,
) -> None:
    """List recent documents."""
    with client() as memory:
        page = memory.list(limit=limit, cursor=cursor)
    if as_json:
        print_json(page)
        return
    rows = [
        (f"{event.at:%Y-%m-%d %H:%M}", event.title, event.kind, event.source, event.document_id)
        for event in page.events
    ]
    print_table(
        ("seen", "title", "kind", "source", "document"), rows, empty="No documents yet; `memory add` makes one."
    )
    if page.next_cursor:
        out.print(f"more: memory list --cursor {page.next_cursor}", style="dim", soft_wrap=True)


def feed(
    after: Annotated[int, typer.Option(help="The cursor of the last page; 0 begins.", min=0)] = 0,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 50,
    exclude_generator: Annotated[str | None, typer.Option(help="Leave out what this agent generated.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Keep waiting for more; Ctrl-C ends.")] = False,
    as_json: AsJson = False,
) -> None:
    """Pull new versions in their order."""
    with client() as memory:
        if not follow:
            page = memory.feed(after=after, limit=limit, exclude_generator=exclude_generator)
            if as_json:
                print_json(page)
                return
            rows = [
                (entry.feed_seq, entry.status, entry.title, entry.kind, entry.document_id) for entry in page.entries
            ]
            print_table(("position", "status", "title", "kind", "document"), rows, empty="Nothing new.")
            out.print(f"next: memory feed --after {page.next_cursor}", style="dim")
            return
        for page in memory.feed_pages(after=after, limit=limit, exclude_generator=exclude_generator, poll=1.0):
            for entry in page.entries:
                if as_json:
                    sys.stdout.write(entry.model_dump_json(by_alias=True) + "\n")
                    sys.stdout.flush()
                else:
                    out.print(f"{entry.feed_seq:>8}  {entry.title}  {entry.document_id}", markup=False)


def get(
    document: DocumentId,
    version: Annotated[str | None, typer.Option(help="A version number or id; else the newest.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show one document: its text and its versions."""
    with client() as memory:
        found = memory.get(document, version=version)
    if as_json:
        print_json(found)
        return
    out.print(found.document.title or found.document.document_id, style="bold", markup=False)
    out.print(
        f"{found.document.kind} · {found.document.adapter}:{found.document.external_ref} · "
        f"tags {', '.join(found.document.access_tags) or 'none'}",
        style="dim",
        markup=False,
    )
    out.print(found.text if found.text is not None else "(forgotten: no text)", markup=False, highlight=False)
    rows = [
        (
            item.version,
            item.status,
            item.retention_class,
            f"{item.ingested_at:%Y-%m-%d %H:%M}",
            item.embed_state,
            item.version_id,
        )
        for item in found.versions
    ]
    print_table(("version", "status", "retention", "ingested", "embedded", "id"), rows)


def forget(
    document: DocumentId,
    reason: Annotated[str | None, typer.Option(help="Your words; they are kept for audit.")] = None,
    as_json: AsJson = False,
) -> None:
    """Erase a document's content everywhere; ids, times and your reason stay for audit."""
    with client() as memory:
        done = memory.forget(document, reason=reason)
    if as_json:
        print_json(done)
    else:
        out.print(f"forgotten: {done.versions} versions, and {done.derived_forgotten} derived from them")


def purge(
    document: DocumentId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a document and everything under it. Nothing brings it back."""
    if not yes:
        if not sys.stdin.isatty():
            usage("purge asks before it deletes; say --yes where nobody can answer.")
        typer.confirm(f"Delete {document} for good?", abort=True)
    with client() as memory:
        done = memory.purge(document)
    if as_json:
        print_json(done)
    elif done.deleted:
        out.print(f"purged {done.document_id}")
    else:
        out.print(f"not purged: {done.reason}", style="yellow", markup=False)
        raise typer.Exit(1)


def _attributes(pairs: list[str] | None) -> dict[str, str] | None:
    if not pairs:
        return None
    split = [pair.partition("=") for pair in pairs]
    if any(not separator or not name for name, separator, _ in split):
        raise Invalid("An attribute is written name=value.", code="usage")
    return {name: value for name, _, value in split}
