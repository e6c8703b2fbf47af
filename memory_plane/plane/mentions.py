"""What a document still mentions when one of its versions goes and others stay.

Mentions hang on the document, not on the version that made them, so the payloads of the remaining versions decide.
"""

import json
from collections import defaultdict
from collections.abc import Collection

from memory_plane.core.text import clean_text
from memory_plane.store import erasure
from memory_plane.store.database import Connection

EntityName = tuple[str, str]


async def unnamed(conn: Connection, tenant_id: str, document_ids: Collection[str]) -> list[str]:
    """Edges to entities that no remaining version of these documents names."""
    named: defaultdict[str, set[EntityName]] = defaultdict(set)
    for document_id, payload in await erasure.remaining_payloads(conn, tenant_id, document_ids):
        named[document_id] |= _entities(payload)
    return [
        mention.edge_id
        for mention in await erasure.mentions(conn, tenant_id, document_ids)
        if (mention.kind, mention.identifier) not in named[mention.document_id]
    ]


def _entities(payload: str | bytes) -> set[EntityName]:
    text = payload if isinstance(payload, str) else payload.decode("utf-8", "surrogatepass")
    hints = json.loads(text).get("entities") or ()
    return {
        ("principal" if hint["kind"] == "native" else clean_text(hint["kind"]), clean_text(hint["identifier"]))
        for hint in hints
    }
