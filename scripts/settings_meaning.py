"""What each setting is, in a sentence, for docs/configuration.md: by section, in the order of the page."""
# ruff: noqa: E501 - a sentence is one line

from collections.abc import Mapping

MEANING: Mapping[str, Mapping[str, str]] = {
    "Database": {
        "DATABASE_URL": "PostgreSQL with pgvector 0.8.4 or newer. A role of its own for each process: `deploy/sql/roles.sql`.",
        "DB_POOL_MAX": "Connections that this process may open. All processes together must fit the server.",
        "DB_STATEMENT_TIMEOUT_MS": "After this a statement is given up, and the caller told 503 `statement_timeout`.",
        "DB_PGBOUNCER": "Behind PgBouncer in transaction mode; see [scaling](operations/scaling.md#pgbouncer).",
        "DATABASE_DIRECT_URL": "Past PgBouncer, for migrations and the worker's index builds. Default: `DATABASE_URL`.",
        "FTS_LANGUAGE": "PostgreSQL's text search configuration. Fixed by the first `memory migrate`; nothing starts with another.",
    },
    "Embedding": {
        "EMBED_BASE_URL": "The embedding endpoint, without the style's own path. Goes with `EMBED_MODEL`; without both, search is lexical only. It makes new tenants' first recipe; a live generation keeps its own.",
        "EMBED_MODEL": "The model's name as the endpoint knows it.",
        "EMBED_API_STYLE": "The endpoint's wire format.",
        "EMBED_API_KEY": "Sent as a bearer token. A recipe names it by variable, never by value.",
        "EMBED_TIMEOUT_MS": "For one whole request to the endpoint.",
        "EMBED_BATCH_SIZE": "Texts in one request.",
        "EMBED_MAX_INPUT_TOKENS": "What the model reads of a text; longer chunks are shortened to it. Default: by the model's name.",
        "EMBED_INLINE_BUDGET_MS": "How long an add waits for vectors before it leaves them to a workflow; 0 always leaves them.",
        "MEMORY_EMBEDS_PER_SECOND": "Embed activities that all workers together begin in a second. Default: no limit.",
    },
    "Reranking and search": {
        "RERANK_BASE_URL": "The reranker. Without it the fused order is final.",
        "RERANK_MODEL": "Its model's name.",
        "RERANK_API_STYLE": "Its wire format.",
        "RERANK_API_KEY": "Sent as a bearer token.",
        "RERANK_MAX_DOC_CHARS": "Of each document, what the reranker is shown. Default: by the model's token limit.",
        "RERANK_TIMEOUT_MS": "After this a search goes on without it and says `rerank_unavailable`.",
        "SEARCH_DEADLINE_MS": "For a whole search; what is not there by then is left out and named in `degraded`.",
    },
    "Temporal": {
        "TEMPORAL_ADDRESS": "Host and port of the frontend. Profiles and `TEMPORAL_TLS_*` of Temporal's own CLI are read too; what is set here wins.",
        "TEMPORAL_NAMESPACE": "One namespace for each deployment.",
        "TEMPORAL_TLS": "With TLS; implied by an API key.",
        "TEMPORAL_API_KEY": "For Temporal Cloud.",
        "MEMORY_BUILD_ID": "Runs the worker under Worker Versioning; see [upgrades](operations/upgrades.md). Without it, off.",
    },
    "Identity": {
        "MEMORY_AUTH": "How the API knows who calls. It does not start without a choice.",
        "MEMORY_CALLER_RESOLVER": "`package.module:callable`, for `custom`.",
        "MEMORY_JWT_JWKS": "URL or file of the JWKS, for `jwt`.",
        "MEMORY_JWT_ISSUER": "The only issuer that is believed.",
        "MEMORY_JWT_AUDIENCE": "The audience that a token must be for.",
        "MEMORY_JWT_TENANT_CLAIM": "The claim that holds the tenant.",
        "MEMORY_JWT_PRINCIPAL_CLAIM": "The claim that holds the principal.",
        "MEMORY_GATEWAY_SECRET": "What a gateway sends to be believed, for `gateway`.",
        "MEMORY_GATEWAY_TENANT_HEADER": "Where it puts the tenant.",
        "MEMORY_GATEWAY_PRINCIPAL_HEADER": "Where it puts the principal.",
        "MEMORY_MCP_ALLOW_FORGET": "Whether the MCP tools at `/mcp` include `memory_forget`.",
    },
    "Distilling and processing": {
        "MEMORY_PROCESSORS": "What `process` may ask for, by name, as JSON: `{\"tagger\": {\"kind\": \"activity\", \"type\": …, \"task_queue\": …}}`.",
        "DISTILL_BASE_URL": "A chat endpoint (OpenAI style) that distils notes into claims. Goes with `DISTILL_MODEL`.",
        "DISTILL_MODEL": "Its model's name.",
        "DISTILL_API_KEY": "Sent as a bearer token.",
        "DISTILL_TIMEOUT_MS": "For one request to it.",
        "DISTILL_TENANTS": "Tenants for which a distiller runs by schedule, with commas or as JSON.",
        "DISTILL_PRINCIPAL": "In whose name claims are written, and whose grants decide what is read.",
        "DISTILL_AGENT": "The name under which it follows the feed, and which it puts on its claims.",
        "DISTILL_PROCESSOR": "A host's activity or workflow in the place of the chat endpoint, as JSON like one of `MEMORY_PROCESSORS`.",
        "DISTILL_CLAIMS": "Whether claims are distilled too. Off: a distiller does not feed on distillers.",
        "DISTILL_EVERY_SECONDS": "How often the schedule looks for something new.",
    },
    "Operation": {
        "MEMORY_METRICS_PORT": "The worker's port for `/metrics` (ours and the Temporal SDK's), `/healthz` and `/readyz`. Without it there is none; the API has the three on its own port.",
        "MEMORY_LOG_LEVEL": "Of our own log lines; libraries speak from warnings up.",
    },
}  # fmt: skip
