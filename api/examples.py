"""One request and one answer of each route, for the OpenAPI document; by the path under `/memory`."""

from typing import Any

_DOCUMENT = "kdoc_0199c1a2b3c47d5e8f90123456789abc"
_VERSION = "kver_0199c1a2b3c47d5e8f90123456789abd"
_NOTE = {
    "title": "Release date",
    "text": "We ship the parser on Friday; Bob signs it off.",
    "kind": "decision",
    "external_ref": "notes/42",
    "share": {"tenant": True},
    "attributes": {"project": "parser"},
}
_ADDED = {"documentId": _DOCUMENT, "versionId": _VERSION, "status": "captured"}
_VERSION_SUMMARY = {
    "versionId": _VERSION,
    "version": 1,
    "status": "active",
    "kind": "decision",
    "title": "Release date",
    "provenance": "stated",
    "sourceClass": "native",
    "temporalClass": "event",
    "retentionClass": "standard",
    "createdByKind": "human",
    "occurredAt": "2026-03-02T09:30:00Z",
    "ingestedAt": "2026-03-02T09:30:00Z",
    "derivedFrom": [],
    "embedState": "embedded",
}

REQUESTS: dict[str, dict[str, Any]] = {
    "/add": _NOTE,
    "/add/batch": {"items": [_NOTE, {"title": "Standup", "text": "Nothing is blocked."}]},
    "/search": {"query": "when do we ship the parser?", "limit": 8, "kinds": ["decision"]},
    "/documents/{documentId}/forget": {"reason": "asked for by its author"},
    "/versions/{versionId}/retention-class": {"retention_class": "durable"},
}

ANSWERS: dict[str, dict[str, Any]] = {
    "/add": _ADDED,
    "/add/batch": {
        "items": [
            {"index": 0, **_ADDED},
            {"index": 1, "error": {"code": "invalid", "detail": "The request is not valid: text is required."}},
        ],
        "degraded": ["embed_pending"],
    },
    "/search": {
        "items": [
            {
                "documentId": _DOCUMENT,
                "title": "Release date",
                "snippet": "We ship the parser on Friday; Bob signs it off.",
                "score": 0.93,
                "kind": "decision",
                "citation": {
                    "adapter": "http",
                    "external_ref": "notes/42",
                    "open": {"type": "memory", "id": _DOCUMENT},
                },
                "updatedAt": "2026-03-02T09:30:00Z",
                "attribution": {
                    "versionId": _VERSION,
                    "version": 1,
                    "provenance": "stated",
                    "sourceClass": "native",
                    "temporalClass": "event",
                    "createdByKind": "human",
                    "occurredAt": "2026-03-02T09:30:00Z",
                    "supports": 2,
                    "contradicts": 0,
                    "derivedFrom": [],
                    "channels": ["lexical", "dense"],
                },
            }
        ],
        "evidence": "strong",
    },
    "/list": {
        "events": [
            {
                "at": "2026-03-02T09:30:00Z",
                "title": "Release date",
                "source": "http",
                "tenantId": "acme",
                "principalId": "ann",
                "documentId": _DOCUMENT,
                "versionId": _VERSION,
                "kind": "decision",
            }
        ],
        "nextCursor": "WyI1ZjFkIiwgMTc3MjQ0NDIwMDAwMDAwMCwgImtkb2NfMDE5OSJd",
    },
    "/feed": {
        "entries": [
            {
                "feedSeq": 17,
                "versionId": _VERSION,
                "documentId": _DOCUMENT,
                "kind": "decision",
                "title": "Release date",
                "status": "active",
                "createdByKind": "human",
                "generatorAgentId": None,
                "provenance": "stated",
                "occurredAt": "2026-03-02T09:30:00Z",
                "createdAt": "2026-03-02T09:30:00Z",
                "accessTags": ["memory.owner:ann", "memory.tenant:acme"],
            }
        ],
        "nextCursor": 17,
    },
    "/documents/{documentId}": {
        "document": {
            "documentId": _DOCUMENT,
            "adapter": "http",
            "externalRef": "notes/42",
            "title": "Release date",
            "kind": "decision",
            "accessTags": ["memory.owner:ann", "memory.tenant:acme"],
            "attributes": {"project": "parser"},
            "createdByPrincipalId": "ann",
            "createdAt": "2026-03-02T09:30:00Z",
            "lastSeenAt": "2026-03-02T09:30:00Z",
        },
        "version": _VERSION_SUMMARY,
        "text": "We ship the parser on Friday; Bob signs it off.",
        "versions": [_VERSION_SUMMARY],
    },
    "/documents/{documentId}/forget": {"documentId": _DOCUMENT, "versions": 1, "derivedForgotten": 0},
    "/documents/{documentId}/purge": {"documentId": _DOCUMENT, "deleted": True},
    "/versions/{versionId}/retention-class": {
        "versionId": _VERSION,
        "documentId": _DOCUMENT,
        "status": "active",
    },
}
