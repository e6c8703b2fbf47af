"""Where a hit opens: in the system it came from where that is one of ours, else as a memory document."""

from memory_plane.contracts.wire import Citation, OpenTarget

OPENABLE_ADAPTERS = frozenset({"artifact", "task", "workflow_run", "mail"})
MEMORY = "memory"


def citation(adapter: str, external_ref: str, document_id: str) -> Citation:
    return Citation(adapter=adapter, external_ref=external_ref, open=open_target(adapter, external_ref, document_id))


def open_target(adapter: str, external_ref: str, document_id: str) -> OpenTarget:
    """An external_ref `<adapter>:<id>` of an openable adapter names the thing itself; any other has only us."""
    prefix, _, identifier = external_ref.partition(":")
    if adapter in OPENABLE_ADAPTERS and prefix == adapter and identifier.strip():
        return OpenTarget(type=adapter, id=identifier)
    return OpenTarget(type=MEMORY, id=document_id)
