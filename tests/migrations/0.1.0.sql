SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE SCHEMA memory;

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE memory.api_token (
    id text NOT NULL,
    token_hash text NOT NULL,
    tenant_id text NOT NULL,
    principal_id text NOT NULL,
    label text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone
);

CREATE TABLE memory.audience_receipt (
    request_id text NOT NULL,
    tenant_id text NOT NULL,
    document_id text NOT NULL,
    version_id text NOT NULL,
    source_version_id text NOT NULL,
    tags text[] NOT NULL,
    approved_by text NOT NULL,
    approved_at timestamp with time zone NOT NULL
);

CREATE TABLE memory.audience_request (
    id text NOT NULL,
    tenant_id text NOT NULL,
    document_id text NOT NULL,
    version_id text NOT NULL,
    source_version_id text NOT NULL,
    tags text[] NOT NULL,
    state text NOT NULL,
    requested_by text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    decided_at timestamp with time zone,
    workflow_seen_at timestamp with time zone,
    CONSTRAINT audience_request_state_check CHECK ((state = ANY (ARRAY['open'::text, 'approved'::text, 'declined'::text])))
);

COMMENT ON COLUMN memory.audience_request.workflow_seen_at IS 'its workflow has begun to wait; the reconciler starts those of open requests without one';

CREATE TABLE memory.chunk (
    id text NOT NULL,
    tenant_id text NOT NULL,
    generation_id text NOT NULL,
    document_id text NOT NULL,
    version_id text NOT NULL,
    ordinal integer NOT NULL,
    text text NOT NULL,
    context text DEFAULT ''::text NOT NULL,
    grams text DEFAULT ''::text NOT NULL,
    span_start integer NOT NULL,
    span_end integer NOT NULL,
    token_count integer NOT NULL,
    role text,
    text_fts tsvector GENERATED ALWAYS AS ((((setweight(to_tsvector('english'::regconfig, context), 'A'::"char") || setweight(to_tsvector('english'::regconfig, text), 'D'::"char")) || to_tsvector('simple'::regconfig, grams)) || array_to_tsvector(ARRAY[('g:'::text || generation_id)]))) STORED NOT NULL
);

COMMENT ON COLUMN memory.chunk.grams IS 'character n-grams of unspaced scripts, for the lexical channel';

CREATE TABLE memory.consumer_cursor (
    tenant_id text NOT NULL,
    consumer text NOT NULL,
    "position" bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE memory.derivation (
    version_id text NOT NULL,
    generation_id text NOT NULL,
    tenant_id text NOT NULL,
    chunk_count integer NOT NULL,
    embed_state text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    held_until timestamp with time zone,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT derivation_embed_state_check CHECK ((embed_state = ANY (ARRAY['pending'::text, 'embedded'::text, 'not_configured'::text, 'failed'::text])))
);

COMMENT ON TABLE memory.derivation IS 'the durable to-do list of the embedder and of catch-up; last_error carries no content';

COMMENT ON COLUMN memory.derivation.held_until IS 'a workflow is on it until then; the reconciler leaves it alone';

CREATE TABLE memory.distill_quarantine (
    tenant_id text NOT NULL,
    agent_id text NOT NULL,
    version_id text NOT NULL,
    reason text NOT NULL,
    attempts integer NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    retry_requested_at timestamp with time zone
);

CREATE TABLE memory.document (
    id text NOT NULL,
    tenant_id text NOT NULL,
    adapter text NOT NULL,
    external_ref text NOT NULL,
    title text NOT NULL,
    kind text NOT NULL,
    access_tags text[] DEFAULT '{}'::text[] NOT NULL,
    attributes jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_by_principal_id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    occurred_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    is_claim boolean DEFAULT false NOT NULL,
    stream bigint GENERATED ALWAYS AS (hash_array_extended((access_tags || ARRAY[adapter, created_by_principal_id, (is_claim)::text]), (0)::bigint)) STORED
);

COMMENT ON COLUMN memory.document.occurred_at IS 'of its newest version; orders a stream: what was said before and after';

COMMENT ON COLUMN memory.document.is_claim IS 'its newest version is derived from others';

CREATE TABLE memory.edge (
    id text NOT NULL,
    tenant_id text NOT NULL,
    rel text NOT NULL,
    from_type text NOT NULL,
    from_id text NOT NULL,
    to_type text NOT NULL,
    to_id text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT edge_from_type_check CHECK ((from_type = ANY (ARRAY['document'::text, 'version'::text, 'chunk'::text, 'entity'::text]))),
    CONSTRAINT edge_rel_check CHECK ((rel = ANY (ARRAY['mentions'::text, 'about'::text, 'authored_by'::text, 'involves'::text, 'part_of'::text, 'derived_from'::text, 'supports'::text, 'contradicts'::text, 'supersedes'::text]))),
    CONSTRAINT edge_to_type_check CHECK ((to_type = ANY (ARRAY['document'::text, 'version'::text, 'chunk'::text, 'entity'::text])))
);

CREATE TABLE memory.embed_model (
    tenant_id text NOT NULL,
    model_key text NOT NULL,
    base_url text NOT NULL,
    model text NOT NULL,
    style text NOT NULL,
    dims integer NOT NULL,
    table_name text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT embed_model_dims_check CHECK (((dims >= 64) AND (dims <= 4000))),
    CONSTRAINT embed_model_model_key_check CHECK ((model_key ~ '^[a-f0-9]{16}$'::text)),
    CONSTRAINT embed_model_style_check CHECK ((style = ANY (ARRAY['openai'::text, 'tei'::text, 'ollama'::text]))),
    CONSTRAINT embed_model_table_name_check CHECK ((table_name ~ '^embedding_[a-f0-9]{16}$'::text))
);

COMMENT ON TABLE memory.embed_model IS 'model_key = first 16 hex of sha256(base_url|model) at registration, never recomputed; the tenant "" is the engine''s own row';

CREATE TABLE memory.embedding_394bb6ba23279a63 (
    chunk_id text NOT NULL,
    slot smallint NOT NULL,
    tenant_id text NOT NULL,
    generation_id text NOT NULL,
    version_id text NOT NULL,
    embedding public.halfvec(96) NOT NULL
);
ALTER TABLE ONLY memory.embedding_394bb6ba23279a63 ALTER COLUMN embedding SET STORAGE PLAIN;

CREATE TABLE memory.embedding_68450137d11a7132 (
    chunk_id text NOT NULL,
    slot smallint NOT NULL,
    tenant_id text NOT NULL,
    generation_id text NOT NULL,
    version_id text NOT NULL,
    embedding public.halfvec(64) NOT NULL
);
ALTER TABLE ONLY memory.embedding_68450137d11a7132 ALTER COLUMN embedding SET STORAGE PLAIN;

CREATE TABLE memory.entity (
    id text NOT NULL,
    tenant_id text NOT NULL,
    kind text NOT NULL,
    identifier text NOT NULL,
    label text,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE memory.feed_event (
    tenant_id text NOT NULL,
    "position" bigint NOT NULL,
    kind text NOT NULL,
    document_id text NOT NULL,
    version_id text,
    at timestamp with time zone NOT NULL,
    CONSTRAINT feed_event_kind_check CHECK ((kind = ANY (ARRAY['captured'::text, 'retagged'::text, 'shared'::text, 'reclassed'::text, 'deprecated'::text, 'forgotten'::text, 'purged'::text])))
);

CREATE TABLE memory.generation (
    id text NOT NULL,
    tenant_id text NOT NULL,
    state text NOT NULL,
    recipe jsonb NOT NULL,
    model_key text,
    dims integer,
    caught_up_to bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    state_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT generation_dims_check CHECK (((dims >= 64) AND (dims <= 4000))),
    CONSTRAINT generation_model_key_check CHECK ((model_key ~ '^[a-f0-9]{16}$'::text)),
    CONSTRAINT generation_state_check CHECK ((state = ANY (ARRAY['building'::text, 'staged'::text, 'live'::text, 'archived'::text, 'failed'::text, 'retired'::text])))
);

COMMENT ON COLUMN memory.generation.caught_up_to IS 'the feed position up to which this generation has been walked';

CREATE TABLE memory.grant_rule (
    id text NOT NULL,
    tenant_id text NOT NULL,
    principal_id text,
    role_id text,
    resource text NOT NULL,
    action text NOT NULL,
    effect text NOT NULL,
    origin text NOT NULL,
    conditions jsonb,
    expires_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT grant_rule_check CHECK (((principal_id IS NULL) <> (role_id IS NULL))),
    CONSTRAINT grant_rule_effect_check CHECK ((effect = ANY (ARRAY['allow'::text, 'deny'::text, 'ask'::text]))),
    CONSTRAINT grant_rule_origin_check CHECK ((origin = ANY (ARRAY['system'::text, 'role'::text, 'creator'::text, 'invoker'::text])))
);

CREATE TABLE memory.idempotency_key (
    tenant_id text NOT NULL,
    principal_id text NOT NULL,
    key text NOT NULL,
    body_hash text NOT NULL,
    document_id text NOT NULL,
    version_id text NOT NULL,
    status text NOT NULL,
    grants_materialized boolean,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT idempotency_key_status_check CHECK ((status = ANY (ARRAY['captured'::text, 'noop'::text])))
);

CREATE TABLE memory.installation (
    only_row boolean DEFAULT true NOT NULL,
    hash_key text DEFAULT ((gen_random_uuid())::text || (gen_random_uuid())::text) NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT installation_only_row_check CHECK (only_row)
);

COMMENT ON TABLE memory.installation IS 'hash_key keys the hashes of idempotency bodies, so that they identify no content';

CREATE TABLE memory.lexical_corpus (
    tenant_id text NOT NULL,
    generation_id text NOT NULL,
    chunk_count bigint NOT NULL,
    total_length bigint NOT NULL,
    through_position bigint DEFAULT 0 NOT NULL,
    refreshed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE memory.lexical_term (
    tenant_id text NOT NULL,
    generation_id text NOT NULL,
    term_hash bigint NOT NULL,
    chunk_count integer NOT NULL
);

COMMENT ON TABLE memory.lexical_term IS 'document frequencies by hashed term: statistics hold no words';

CREATE TABLE memory.migration (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE memory.principal_role (
    tenant_id text NOT NULL,
    principal_id text NOT NULL,
    role_id text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE memory.process_request (
    version_id text NOT NULL,
    processor text NOT NULL,
    tenant_id text NOT NULL,
    state text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    claims integer DEFAULT 0 NOT NULL,
    held_until timestamp with time zone,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT process_request_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'done'::text, 'skipped'::text, 'quarantined'::text])))
);

CREATE TABLE memory.raw_capture (
    id text NOT NULL,
    tenant_id text NOT NULL,
    document_id text NOT NULL,
    source_hash text NOT NULL,
    adapter text NOT NULL,
    raw_text text,
    raw_bytes bytea,
    fetched_at timestamp with time zone NOT NULL,
    CONSTRAINT raw_capture_check CHECK (((raw_text IS NULL) <> (raw_bytes IS NULL)))
);

CREATE TABLE memory.tenant_counter (
    tenant_id text NOT NULL,
    "position" bigint NOT NULL
)
WITH (fillfactor='20');

COMMENT ON TABLE memory.tenant_counter IS 'advanced in the same last statement that writes feed events, so that commit order is position order';

CREATE TABLE memory.transform_config (
    id text NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    params jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT transform_config_version_check CHECK ((version > 0))
);

CREATE TABLE memory.transform_failure (
    run_id text NOT NULL,
    tenant_id text NOT NULL,
    version_id text NOT NULL,
    error text NOT NULL,
    attempts integer DEFAULT 1 NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON COLUMN memory.transform_failure.run_id IS 'the run, which is its own generation; a tenant''s first generation was made by none and fails under its own id';

CREATE TABLE memory.transform_run (
    id text NOT NULL,
    tenant_id text NOT NULL,
    config_id text NOT NULL,
    generation_id text NOT NULL,
    status text NOT NULL,
    scope jsonb DEFAULT '{}'::jsonb NOT NULL,
    walk_goal bigint,
    walk_total bigint DEFAULT 0 NOT NULL,
    raw_count bigint DEFAULT 0 NOT NULL,
    version_count bigint DEFAULT 0 NOT NULL,
    chunk_count bigint DEFAULT 0 NOT NULL,
    failed_count bigint DEFAULT 0 NOT NULL,
    error text,
    review jsonb,
    archived_live_generation text,
    archived_live_model_key text,
    promoted_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT transform_run_status_check CHECK ((status = ANY (ARRAY['running'::text, 'completed'::text, 'failed'::text])))
);

COMMENT ON COLUMN memory.transform_run.generation_id IS 'equal to id: a run is its own generation';

COMMENT ON COLUMN memory.transform_run.walk_goal IS 'the feed position at which the walk ends: the counter before it began; walk_total is what was derivable then';

CREATE TABLE memory.version (
    id text NOT NULL,
    tenant_id text NOT NULL,
    document_id text NOT NULL,
    version integer NOT NULL,
    status text NOT NULL,
    status_at timestamp with time zone NOT NULL,
    status_reason text,
    title text NOT NULL,
    kind text NOT NULL,
    supersedes_version_id text,
    content_hash text NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    ingested_at timestamp with time zone NOT NULL,
    valid_from timestamp with time zone,
    valid_until timestamp with time zone,
    temporal_class text NOT NULL,
    retention_class text NOT NULL,
    provenance text NOT NULL,
    source_class text NOT NULL,
    created_by_principal_id text NOT NULL,
    created_by_kind text NOT NULL,
    generator_agent_id text,
    authority double precision NOT NULL,
    actor_count integer DEFAULT 1 NOT NULL,
    has_social_signal boolean DEFAULT false NOT NULL,
    attributes jsonb DEFAULT '{}'::jsonb NOT NULL,
    raw_capture_id text NOT NULL,
    feed_position bigint,
    CONSTRAINT version_authority_check CHECK (((authority >= (0)::double precision) AND (authority <= (1)::double precision))),
    CONSTRAINT version_created_by_kind_check CHECK ((created_by_kind = ANY (ARRAY['human'::text, 'agent'::text, 'system'::text, 'adapter'::text]))),
    CONSTRAINT version_provenance_check CHECK ((provenance = ANY (ARRAY['stated'::text, 'inferred'::text, 'unknown'::text]))),
    CONSTRAINT version_retention_class_check CHECK ((retention_class = ANY (ARRAY['durable'::text, 'standard'::text, 'ephemeral'::text, 'source_only'::text]))),
    CONSTRAINT version_source_class_check CHECK ((source_class = ANY (ARRAY['native'::text, 'imported'::text, 'derived'::text]))),
    CONSTRAINT version_status_check CHECK ((status = ANY (ARRAY['active'::text, 'superseded'::text, 'deprecated'::text, 'archived'::text, 'tombstoned'::text]))),
    CONSTRAINT version_temporal_class_check CHECK ((temporal_class = ANY (ARRAY['event'::text, 'deadline'::text, 'state'::text, 'lesson'::text]))),
    CONSTRAINT version_version_check CHECK ((version > 0))
);

COMMENT ON COLUMN memory.version.feed_position IS 'written by the last statement of the capture transaction; never null after commit';

COPY memory.api_token (id, token_hash, tenant_id, principal_id, label, created_at, expires_at, last_used_at, revoked_at) FROM stdin;
mtok_01a22f6a8e63708e881ada9fe1c444e9	99f0e0c181a51aebbd1e3f5769459973fcc511cb788b397b5d24e662965e2ddb	acme	ann	laptop	2026-12-01 02:24:02.147574+00	\N	\N	\N
\.

COPY memory.audience_receipt (request_id, tenant_id, document_id, version_id, source_version_id, tags, approved_by, approved_at) FROM stdin;
kaud_01a22f6a8cb07e12ac2e3d0a542d143a	acme	kdoc_01a22f6a8ca1770eba46b26b18bd1c81	kver_01a22f6a8ca576a993a8903960528c90	kver_01a22f6a8a007268a210fd08d8b0a911	{memory.owner:carl}	ann	2026-12-01 02:24:02.150838+00
\.

COPY memory.audience_request (id, tenant_id, document_id, version_id, source_version_id, tags, state, requested_by, created_at, decided_at, workflow_seen_at) FROM stdin;
kaud_01a22f6a8cb07e12ac2e3d0a542d143a	acme	kdoc_01a22f6a8ca1770eba46b26b18bd1c81	kver_01a22f6a8ca576a993a8903960528c90	kver_01a22f6a8a007268a210fd08d8b0a911	{memory.owner:carl}	open	bob	2026-12-01 02:24:01.714769+00	\N	\N
\.

COPY memory.chunk (id, tenant_id, generation_id, document_id, version_id, ordinal, text, context, grams, span_start, span_end, token_count, role) FROM stdin;
kchk_01a22f6a89be710cb41634069d2ba16e	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kdoc_01a22f6a89b7730792745de164f88d4b	kver_01a22f6a89bd7fbe90b40d5311c1e921	0	The boats lie by the harbour.			0	29	8	\N
kchk_01a22f6a8a01762483218695bec5b517	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kdoc_01a22f6a89b7730792745de164f88d4b	kver_01a22f6a8a007268a210fd08d8b0a911	0	The boats lie by the old harbour.			0	33	9	\N
kchk_01a22f6a8a257d3eb15a5aebf86435b2	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kdoc_01a22f6a8a2273279d980905f93fe0cc	kver_01a22f6a8a2376ea80b696b4c1d72326	0	Ship on Friday.	Plan\n1 December 2026		0	15	4	\N
kchk_01a22f6a8a3478e69c31a90c1a2fa7c8	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kdoc_01a22f6a8a337c2d8eb710341d4cf38d	kver_01a22f6a8a3477baaa68d55234e18978	0	The offer ends soon.	Due		0	20	5	\N
kchk_01a22f6a8a7678df9bc82b95041a76eb	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kdoc_01a22f6a8a757a8fa91d9bdd4f4410af	kver_01a22f6a8a7677c7a6f121276cadb7d9	0	A host tags this.	Tagged		0	17	5	\N
kchk_01a22f6a8a88773da43fd3be429f0538	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kdoc_01a22f6a8a877d82b747ed8e99bae86b	kver_01a22f6a8a88765a8075a10b0fbeead8	0	Only for today.	Passing		0	15	4	\N
kchk_01a22f6a8a94791b9c4ad2b84175945d	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kdoc_01a22f6a8a94773081915e10c47ec7b0	kver_01a22f6a8a94784caab11ce6b327afd2	0	One of a batch.			0	15	4	\N
kchk_01a22f6a8a51791abbef4077d59c6b19	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kdoc_01a22f6a8a4c784886f0bc3ccbfc6b4e	kver_01a22f6a8a5177e3b9ff870e080d2ac1	0	[redacted]	[redacted]		0	0	0	\N
kchk_01a22f6a8ca57805b4845b9222987ced	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kdoc_01a22f6a8ca1770eba46b26b18bd1c81	kver_01a22f6a8ca576a993a8903960528c90	0	The harbour is old.			0	19	5	\N
kchk_01a22f6a8d577d6d819b853a20dc78c6	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kdoc_01a22f6a89b7730792745de164f88d4b	kver_01a22f6a8a007268a210fd08d8b0a911	0	The boats lie by the old harbour.			0	33	9	\N
kchk_01a22f6a8d587420b3fdf5a4efba5f47	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kdoc_01a22f6a8a2273279d980905f93fe0cc	kver_01a22f6a8a2376ea80b696b4c1d72326	0	Ship on Friday.	Plan\n1 December 2026		0	15	4	\N
kchk_01a22f6a8d58780db5a5a4b01cd4cfea	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kdoc_01a22f6a8a337c2d8eb710341d4cf38d	kver_01a22f6a8a3477baaa68d55234e18978	0	The offer ends soon.	Due		0	20	5	\N
kchk_01a22f6a8d587ae89523a699576d5f44	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kdoc_01a22f6a8a757a8fa91d9bdd4f4410af	kver_01a22f6a8a7677c7a6f121276cadb7d9	0	A host tags this.	Tagged		0	17	5	\N
kchk_01a22f6a8d587dc797f371fe111b16f2	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kdoc_01a22f6a8a877d82b747ed8e99bae86b	kver_01a22f6a8a88765a8075a10b0fbeead8	0	Only for today.	Passing		0	15	4	\N
kchk_01a22f6a8d59708a9b2355a9f7724d8e	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kdoc_01a22f6a8a94773081915e10c47ec7b0	kver_01a22f6a8a94784caab11ce6b327afd2	0	One of a batch.			0	15	4	\N
kchk_01a22f6a8d5975b6928224d6663bdd90	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kdoc_01a22f6a8ca1770eba46b26b18bd1c81	kver_01a22f6a8ca576a993a8903960528c90	0	The harbour is old.			0	19	5	\N
\.

COPY memory.consumer_cursor (tenant_id, consumer, "position", updated_at) FROM stdin;
acme	mirror	3	2026-12-01 02:24:02.148581+00
\.

COPY memory.derivation (version_id, generation_id, tenant_id, chunk_count, embed_state, attempts, last_error, held_until, updated_at) FROM stdin;
kver_01a22f6a89bd7fbe90b40d5311c1e921	kgen_01a22f6a89b27e5693ab5059e1dabc20	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.013568+00
kver_01a22f6a8a007268a210fd08d8b0a911	kgen_01a22f6a89b27e5693ab5059e1dabc20	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.041233+00
kver_01a22f6a8a2376ea80b696b4c1d72326	kgen_01a22f6a89b27e5693ab5059e1dabc20	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.069957+00
kver_01a22f6a8a3477baaa68d55234e18978	kgen_01a22f6a89b27e5693ab5059e1dabc20	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.088901+00
kver_01a22f6a8a7677c7a6f121276cadb7d9	kgen_01a22f6a89b27e5693ab5059e1dabc20	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.153048+00
kver_01a22f6a8a88765a8075a10b0fbeead8	kgen_01a22f6a89b27e5693ab5059e1dabc20	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.166697+00
kver_01a22f6a8ca576a993a8903960528c90	kgen_01a22f6a89b27e5693ab5059e1dabc20	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.748011+00
kver_01a22f6a8a007268a210fd08d8b0a911	trun_01a22f6a8cdc7f758015f3197e31d0e5	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.919766+00
kver_01a22f6a8a2376ea80b696b4c1d72326	trun_01a22f6a8cdc7f758015f3197e31d0e5	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.919863+00
kver_01a22f6a8a3477baaa68d55234e18978	trun_01a22f6a8cdc7f758015f3197e31d0e5	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.919889+00
kver_01a22f6a8a7677c7a6f121276cadb7d9	trun_01a22f6a8cdc7f758015f3197e31d0e5	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.91991+00
kver_01a22f6a8a88765a8075a10b0fbeead8	trun_01a22f6a8cdc7f758015f3197e31d0e5	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.919931+00
kver_01a22f6a8a94784caab11ce6b327afd2	trun_01a22f6a8cdc7f758015f3197e31d0e5	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.919954+00
kver_01a22f6a8ca576a993a8903960528c90	trun_01a22f6a8cdc7f758015f3197e31d0e5	acme	1	embedded	0	\N	\N	2026-12-01 02:24:01.92826+00
kver_01a22f6a8a94784caab11ce6b327afd2	kgen_01a22f6a89b27e5693ab5059e1dabc20	acme	1	embedded	0	\N	\N	2026-12-01 02:24:02.111034+00
\.

COPY memory.distill_quarantine (tenant_id, agent_id, version_id, reason, attempts, created_at, retry_requested_at) FROM stdin;
acme	distiller	kver_01a22f6a89bd7fbe90b40d5311c1e921	It would not be distilled.	5	2026-12-01 02:24:02.149125+00	\N
\.

COPY memory.document (id, tenant_id, adapter, external_ref, title, kind, access_tags, attributes, created_by_principal_id, created_at, last_seen_at, occurred_at, is_claim) FROM stdin;
kdoc_01a22f6a89b7730792745de164f88d4b	acme	http	harbour	Harbour	note	{memory.owner:ann,memory.tenant:acme}	{}	ann	2026-12-01 02:24:00.955004+00	2026-12-01 02:24:01.021919+00	2026-12-01 02:24:01.024913+00	f
kdoc_01a22f6a8a2273279d980905f93fe0cc	acme	http	plan	Plan	note	{memory.owner:ann,memory.space:eng}	{}	ann	2026-12-01 02:24:01.058853+00	2026-12-01 02:24:01.058853+00	2026-12-01 02:24:00.927892+00	f
kdoc_01a22f6a8a337c2d8eb710341d4cf38d	acme	http	due	Due	note	{memory.owner:ann}	{}	ann	2026-12-01 02:24:01.076165+00	2026-12-01 02:24:01.076165+00	2026-12-01 02:24:01.076165+00	f
kdoc_01a22f6a8a757a8fa91d9bdd4f4410af	acme	http	tagged	Tagged	note	{memory.owner:ann}	{}	ann	2026-12-01 02:24:01.142179+00	2026-12-01 02:24:01.142179+00	2026-12-01 02:24:01.142179+00	f
kdoc_01a22f6a8a877d82b747ed8e99bae86b	acme	http	passing	Passing	note	{memory.owner:ann}	{}	ann	2026-12-01 02:24:01.160102+00	2026-12-01 02:24:01.160102+00	2026-12-01 02:24:01.160102+00	f
kdoc_01a22f6a8a94773081915e10c47ec7b0	acme	http	memory:acme:549a5bd5-d99c-4996-a4fa-434b7a25dd33	Batch	note	{memory.owner:ann}	{}	ann	2026-12-01 02:24:01.174386+00	2026-12-01 02:24:01.174386+00	2026-12-01 02:24:01.174386+00	f
kdoc_01a22f6a8a4c784886f0bc3ccbfc6b4e	acme	http	gone	[redacted]	[redacted]	{memory.owner:ann}	{}	ann	2026-12-01 02:24:01.100992+00	2026-12-01 02:24:01.100992+00	2026-12-01 02:24:01.100992+00	f
kdoc_01a22f6a8ca1770eba46b26b18bd1c81	acme	claim	a/kver_01a22f6a8a007268a210fd08d8b0a911/0	Old	note	{memory.owner:bob}	{}	bob	2026-12-01 02:24:01.698859+00	2026-12-01 02:24:01.698859+00	2026-12-01 02:24:01.698859+00	t
\.

COPY memory.edge (id, tenant_id, rel, from_type, from_id, to_type, to_id, created_at) FROM stdin;
kedg_01a22f6a8a257eadb3832cb23bc059c7	acme	mentions	document	kdoc_01a22f6a8a2273279d980905f93fe0cc	entity	kent_01a22f6a8a247b4fa04774b6231a685c	2026-12-01 02:24:01.055487+00
kedg_01a22f6a8ca5792a8c7f5c8a06c813f1	acme	derived_from	version	kver_01a22f6a8ca576a993a8903960528c90	version	kver_01a22f6a8a007268a210fd08d8b0a911	2026-12-01 02:24:01.684126+00
\.

COPY memory.embed_model (tenant_id, model_key, base_url, model, style, dims, table_name, created_at, updated_at) FROM stdin;
	68450137d11a7132	http://endpoint.of.the.release	one	openai	64	embedding_68450137d11a7132	2026-12-01 02:24:00.857545+00	2026-12-01 02:24:00.857545+00
acme	394bb6ba23279a63	http://endpoint.of.the.release	two	openai	96	embedding_394bb6ba23279a63	2026-12-01 02:24:01.838313+00	2026-12-01 02:24:01.838313+00
acme	68450137d11a7132	http://endpoint.of.the.release	one	openai	64	embedding_68450137d11a7132	2026-12-01 02:24:02.070192+00	2026-12-01 02:24:02.070192+00
\.

COPY memory.embedding_394bb6ba23279a63 (chunk_id, slot, tenant_id, generation_id, version_id, embedding) FROM stdin;
kchk_01a22f6a8d577d6d819b853a20dc78c6	0	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kver_01a22f6a8a007268a210fd08d8b0a911	[0.15368652,0.15124512,0.17907715,-0.00070905685,-0.0770874,0.033081055,0.01171875,-0.015838623,-0.06109619,-0.047302246,0.06732178,0.07104492,-0.0836792,-0.13769531,-0.029571533,-0.061462402,-0.02684021,-0.10644531,-0.093322754,-0.07098389,-0.011520386,0.21655273,0.13757324,-0.05065918,0.107910156,0.14855957,0.09173584,0.2364502,-0.06945801,-0.018569946,-0.06982422,0.073791504,0.0016727448,0.05154419,-0.006324768,-0.066711426,0.12805176,-0.07788086,-0.0045547485,0.15405273,-0.101623535,-0.01689148,0.006664276,-0.035339355,0.05038452,-0.07824707,-0.024032593,0.08538818,-0.020477295,0.0949707,0.045043945,-0.026290894,-0.022201538,-0.07128906,-0.027069092,0.053131104,0.19006348,-0.17736816,0.058013916,0.15075684,0.11883545,-0.23828125,-0.13806152,-0.022277832,0.17700195,0.17504883,0.22241211,0.050720215,-0.13720703,0.17248535,0.11791992,-0.027938843,-0.056396484,0.009841919,-0.04928589,-0.010971069,-0.035614014,0.06121826,-0.0848999,0.029312134,0.043518066,-0.09484863,-0.18481445,0.10748291,-0.15075684,-0.0670166,-0.11590576,-0.04916382,-0.007522583,-0.10845947,-0.09466553,-0.039093018,-0.04458618,-0.18713379,0.12646484,0.039489746]
kchk_01a22f6a8d587420b3fdf5a4efba5f47	0	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kver_01a22f6a8a2376ea80b696b4c1d72326	[-0.016937256,0.1854248,-0.10614014,-0.05014038,0.1986084,-0.07006836,0.088378906,0.0970459,-0.11590576,-0.10211182,-0.11791992,-0.015304565,0.006980896,0.14038086,-0.031799316,0.03878784,0.029647827,0.00051784515,-0.092041016,0.03173828,0.025054932,-0.20678711,-0.14526367,0.055419922,0.09539795,-0.1583252,0.00020802021,0.11230469,-0.23522949,-0.073913574,-0.11804199,-0.015899658,0.050964355,-0.022918701,0.010070801,-0.15283203,-0.1796875,-0.19140625,0.014839172,0.032196045,0.10913086,0.06341553,0.09240723,0.046539307,-0.037322998,0.022506714,0.082092285,0.018539429,0.021118164,-0.027130127,0.117370605,0.039642334,0.18078613,0.034973145,0.10852051,0.02973938,-0.0051231384,0.07751465,0.03616333,-0.07244873,-0.050354004,0.055786133,-0.1628418,0.114746094,-0.09753418,0.01889038,-0.047088623,-0.03414917,0.19470215,0.1282959,0.13195801,0.08343506,-0.13891602,0.03604126,0.010986328,-0.14428711,-0.21313477,-0.0041007996,0.026031494,0.014678955,-0.027755737,-0.024627686,-0.1887207,-0.08355713,-0.06915283,-0.027618408,-0.16223145,-0.03829956,0.16833496,-0.032226562,0.18664551,0.11419678,0.18249512,-0.093688965,0.011314392,-0.008476257]
kchk_01a22f6a8d58780db5a5a4b01cd4cfea	0	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kver_01a22f6a8a3477baaa68d55234e18978	[0.019363403,0.14257812,-0.024841309,-0.02027893,0.008781433,-0.03427124,-0.055145264,-0.055480957,-0.03164673,0.15283203,0.019973755,-0.085632324,-4.3988228e-05,-0.014450073,0.01234436,-0.035308838,0.08691406,-0.12438965,0.09082031,-0.02456665,0.18664551,0.111083984,0.09899902,-0.049041748,0.0007638931,-0.016357422,0.2244873,0.1817627,-0.14294434,-0.15698242,-0.16699219,-0.12335205,0.22045898,0.098083496,-0.035614014,-0.07702637,0.011360168,0.0231781,-0.041809082,-0.1104126,-0.017364502,-0.020751953,0.050445557,0.107788086,0.018081665,-0.015075684,-0.12780762,0.08782959,-0.017028809,-0.13671875,0.032836914,0.2322998,0.02796936,0.13916016,-0.016311646,-0.121276855,-0.06347656,-0.03152466,0.04748535,0.1953125,0.028274536,-0.049041748,-0.086364746,-0.015213013,0.17919922,0.029937744,0.32348633,0.04446411,-0.010650635,-0.0042037964,-0.034423828,0.117370605,0.0006041527,-0.113342285,-0.08087158,-0.12420654,-0.017028809,0.056243896,0.01727295,0.064331055,0.11999512,0.05819702,-0.23083496,-0.107421875,0.018753052,0.04244995,-0.051940918,0.18103027,0.05432129,0.053894043,0.109680176,-0.11206055,0.049957275,-0.054718018,0.17932129,-0.0569458]
kchk_01a22f6a8d587ae89523a699576d5f44	0	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kver_01a22f6a8a7677c7a6f121276cadb7d9	[-0.048797607,0.13244629,-0.0019369125,-0.17297363,0.0715332,-0.07055664,-0.025878906,-0.09637451,0.03753662,0.04562378,-0.023284912,-0.026062012,0.060577393,-0.08843994,-0.14074707,0.05810547,0.022705078,0.04711914,-0.09472656,0.11968994,-0.042114258,0.04949951,0.2076416,-0.068725586,-0.06365967,0.026977539,-0.07647705,-0.21911621,0.19921875,-0.064208984,-0.10003662,-0.092163086,-0.12683105,0.0715332,0.06048584,-0.004005432,-0.15722656,-0.011375427,0.14892578,0.2614746,0.1394043,0.046783447,-0.002822876,0.101501465,-0.056518555,-0.0021877289,-0.02468872,0.0027828217,0.046020508,0.041168213,0.08532715,-0.11920166,-0.02406311,0.11236572,-0.0021953583,0.052093506,0.24316406,0.15100098,-0.1496582,0.028381348,-0.044281006,-0.14758301,-0.025344849,0.1340332,0.17822266,-0.15124512,-0.16564941,0.0043144226,-0.07128906,-0.19714355,0.12109375,0.1361084,0.08459473,0.03741455,-0.24157715,0.009727478,0.13330078,0.058502197,0.037872314,-0.015777588,-0.023117065,0.033691406,-0.010269165,0.027496338,-0.047088623,-0.12548828,0.018218994,-0.0115356445,0.0703125,-0.10461426,-0.054473877,0.012489319,-0.11480713,0.06573486,-0.13574219,-0.045166016]
kchk_01a22f6a8d587dc797f371fe111b16f2	0	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kver_01a22f6a8a88765a8075a10b0fbeead8	[-0.107055664,0.1315918,0.119140625,-0.0009860992,-0.06896973,0.037506104,-0.26782227,-0.027297974,-0.17578125,0.057739258,-0.01940918,-0.02078247,-0.008079529,0.010948181,-0.053009033,-0.049041748,-0.010864258,-0.02947998,0.027832031,-0.017227173,0.024993896,0.25976562,-0.039123535,0.13452148,0.014930725,-0.101867676,0.02470398,0.017486572,-0.03466797,-0.08544922,-0.033294678,-0.18762207,-0.15185547,-0.12817383,-0.18237305,0.16479492,0.023788452,0.06390381,-0.034851074,0.033294678,0.15222168,0.18530273,-0.06124878,-0.052703857,0.08331299,0.053253174,0.051818848,-0.004497528,-0.019439697,0.14941406,0.08508301,-0.12670898,0.06060791,0.047027588,0.025970459,0.12133789,-0.1262207,-0.07336426,-0.08984375,-0.1472168,0.13793945,0.059692383,-0.039978027,-0.048034668,0.08782959,0.066223145,0.09118652,0.14575195,-0.06341553,0.23181152,0.07989502,-0.08154297,-0.05065918,-0.09613037,-0.2133789,0.18688965,-0.16894531,0.08862305,-0.04071045,0.03225708,0.05593872,-0.09265137,0.06982422,0.06488037,-0.0046081543,-0.023529053,0.030899048,0.058624268,0.13452148,-0.09362793,0.10595703,0.04345703,-0.06439209,0.03552246,0.21728516,0.03729248]
kchk_01a22f6a8d59708a9b2355a9f7724d8e	0	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kver_01a22f6a8a94784caab11ce6b327afd2	[-0.00043296814,0.040161133,-0.059326172,-0.0074043274,0.051361084,-0.11846924,0.07745361,-0.03729248,-0.11138916,0.074645996,0.14025879,0.030227661,0.0012779236,-0.009384155,0.10369873,-0.17053223,-0.035461426,0.122558594,-0.06768799,-0.18579102,-0.031219482,-0.22241211,-0.075927734,-0.06274414,0.013847351,0.11273193,-0.027435303,-0.23608398,0.12219238,-0.12097168,-0.014137268,-0.08898926,0.12646484,0.13110352,0.0043144226,-0.038909912,-0.22375488,-0.06604004,-0.055999756,0.024124146,0.08093262,-0.13134766,0.13781738,-0.04901123,0.16064453,-0.111083984,-0.10205078,0.1875,-0.16662598,0.09277344,0.06793213,0.055419922,0.19885254,0.022445679,0.097717285,0.04107666,0.06414795,-0.009140015,-0.037475586,-0.2166748,-0.11401367,0.11053467,0.012825012,0.13989258,-0.010169983,-0.028808594,-0.08148193,0.0052490234,0.12432861,0.0289917,0.06829834,0.07373047,0.03451538,0.15429688,-0.15942383,0.033447266,0.10247803,-0.13439941,0.062561035,0.05532837,0.013267517,0.07019043,0.004257202,-0.012550354,-0.16491699,-0.03668213,0.056854248,0.1262207,-0.01197052,0.07354736,0.091674805,-0.05038452,0.11022949,-0.07196045,-0.05404663,-0.21057129]
kchk_01a22f6a8d5975b6928224d6663bdd90	0	acme	trun_01a22f6a8cdc7f758015f3197e31d0e5	kver_01a22f6a8ca576a993a8903960528c90	[0.14562988,0.055358887,0.10003662,0.02508545,-0.07684326,0.14916992,0.034301758,-0.004447937,0.057128906,0.029693604,0.15258789,0.026992798,-0.13098145,-0.13977051,-0.06304932,-0.20800781,0.114990234,-0.078125,-0.020614624,-0.08117676,-0.060638428,0.2163086,0.099975586,-0.022918701,0.008171082,0.21472168,0.18859863,0.31079102,-0.10925293,0.0791626,-0.037628174,0.055389404,0.14379883,-0.023086548,0.03189087,-0.03137207,0.05432129,-0.22229004,-0.029037476,0.11682129,-0.16027832,-0.039276123,-0.051940918,-0.025741577,-0.17053223,0.0034923553,0.005744934,-0.054901123,-0.03668213,0.0770874,0.04598999,-0.0030956268,-0.059570312,-0.08050537,0.028045654,-0.010505676,0.107788086,-0.06958008,0.13623047,0.028182983,0.15039062,-0.17346191,-0.094177246,0.033447266,0.13928223,0.17211914,0.15979004,0.07489014,-0.09173584,0.0022182465,0.097839355,0.052947998,0.114990234,0.091308594,-0.08905029,0.08843994,-0.040283203,0.027786255,-0.015335083,-0.07824707,-0.07891846,-0.06384277,-0.16149902,0.16564941,-0.009490967,-0.027633667,-0.035339355,-0.1430664,0.101623535,-0.0317688,0.11462402,0.011512756,0.01876831,-0.034301758,0.047912598,0.041748047]
\.

COPY memory.embedding_68450137d11a7132 (chunk_id, slot, tenant_id, generation_id, version_id, embedding) FROM stdin;
kchk_01a22f6a89be710cb41634069d2ba16e	0	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kver_01a22f6a89bd7fbe90b40d5311c1e921	[-0.05291748,0.00024700165,0.10101318,-0.12939453,-0.037353516,0.06939697,-0.17553711,0.08673096,0.027496338,0.14379883,-0.24682617,0.13659668,0.08123779,0.074523926,0.123413086,-0.16882324,-0.15698242,0.010185242,-0.025970459,0.22424316,-0.06817627,-0.057495117,-0.2680664,0.026382446,-0.16040039,0.18713379,0.04510498,0.24414062,0.024978638,0.21618652,0.16113281,0.140625,0.10430908,0.20910645,0.07763672,0.08148193,-0.25952148,0.081970215,0.1274414,0.06695557,-0.0960083,0.10253906,-0.103881836,-0.032104492,0.16564941,0.06896973,-0.020492554,0.034698486,-0.02432251,-0.06335449,-0.09484863,0.14892578,0.049682617,0.15393066,0.17224121,0.004348755,0.012420654,0.16003418,0.1508789,0.12902832,0.08734131,0.024032593,0.016830444,0.06628418]
kchk_01a22f6a8a01762483218695bec5b517	0	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kver_01a22f6a8a007268a210fd08d8b0a911	[-0.08117676,-0.014770508,0.101501465,-0.11816406,-0.02053833,0.097717285,-0.23095703,0.06756592,0.060180664,0.1071167,-0.25268555,0.06726074,0.054260254,0.051635742,0.16540527,-0.15966797,-0.18591309,0.03692627,-0.008766174,0.21313477,-0.07330322,-0.046173096,-0.16821289,0.006767273,-0.0847168,0.21765137,0.09637451,0.26416016,0.029830933,0.21496582,0.12561035,0.09686279,0.06060791,0.26757812,0.07788086,0.09515381,-0.21557617,0.1439209,0.14916992,0.025497437,-0.070617676,0.107543945,-0.037200928,-0.0033779144,0.10437012,0.10467529,-0.0072288513,0.038848877,-0.013549805,-0.035491943,-0.15454102,0.09039307,0.05053711,0.17211914,0.23059082,0.027450562,0.005382538,0.0892334,0.18322754,0.0769043,0.1595459,0.034423828,0.029571533,0.13964844]
kchk_01a22f6a8a257d3eb15a5aebf86435b2	0	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kver_01a22f6a8a2376ea80b696b4c1d72326	[-0.024002075,0.0569458,0.15539551,-0.06567383,0.047912598,-0.04727173,0.12658691,0.14367676,-0.11846924,-0.049194336,-0.09820557,-0.1227417,0.017959595,0.015342712,-0.12097168,0.0019836426,-0.093811035,0.07104492,0.032928467,0.21520996,0.0053482056,-0.11413574,-0.16015625,-0.11682129,-0.013168335,0.091552734,0.26611328,0.101989746,0.20788574,0.10992432,0.14770508,0.22680664,-0.030059814,-0.064819336,-0.1505127,-0.076293945,-0.20874023,-0.05984497,0.019958496,0.056793213,-0.037994385,-0.07470703,0.21838379,-0.041290283,0.06567383,-0.041046143,-0.1194458,-0.01651001,0.011314392,-0.021774292,-0.027511597,0.062805176,0.07556152,0.17651367,0.46899414,-0.027191162,0.08477783,0.047454834,-0.21643066,0.14868164,0.04953003,-0.003944397,0.07940674,-0.1640625]
kchk_01a22f6a8a3478e69c31a90c1a2fa7c8	0	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kver_01a22f6a8a3477baaa68d55234e18978	[0.1385498,0.091674805,0.06854248,-0.16174316,-0.1315918,-0.11669922,-0.071777344,0.12487793,0.0592041,0.10406494,-0.10900879,0.05480957,0.14660645,-0.18615723,0.08483887,0.078430176,-0.14147949,0.122558594,0.08453369,-0.09466553,-0.023239136,0.08880615,0.053710938,0.091674805,-0.11224365,-0.04925537,0.1459961,-0.07196045,-0.18493652,0.15246582,0.08734131,0.04272461,0.22912598,0.2388916,0.0017089844,0.14709473,-0.09472656,-0.21740723,0.20410156,-0.09069824,0.030685425,0.16430664,-0.12243652,0.018234253,0.29614258,-0.011360168,0.16125488,0.10974121,0.084228516,0.029663086,-0.140625,0.09320068,-0.1295166,0.072143555,0.06738281,0.13476562,0.015258789,0.054992676,-0.004699707,-0.05404663,-0.33081055,-0.08459473,-0.04019165,-0.0011777878]
kchk_01a22f6a8a7678df9bc82b95041a76eb	0	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kver_01a22f6a8a7677c7a6f121276cadb7d9	[-0.10467529,-0.22155762,0.04449463,0.1182251,-0.1227417,-0.010635376,0.0211792,0.22827148,0.07312012,-0.3215332,-0.2993164,0.1673584,-0.17321777,0.039642334,-0.10064697,0.088378906,-0.003545761,-0.0062065125,0.024108887,0.07733154,0.11816406,-0.15527344,0.10119629,-0.050842285,0.009231567,0.0019512177,-0.25610352,0.11743164,0.00045490265,-0.018508911,-0.11706543,-0.058013916,-0.23400879,-0.18945312,-0.059020996,-0.12731934,-0.18798828,0.13000488,0.05130005,0.07196045,-0.032989502,-0.23071289,0.030776978,0.06896973,-0.026245117,0.18139648,-0.19665527,0.037963867,-0.15454102,0.10089111,-0.07141113,-0.06994629,-0.041809082,-0.002407074,-0.04269409,-0.08850098,0.088134766,0.045684814,-0.046020508,-0.21008301,-0.042633057,-0.066223145,0.053649902,-0.035247803]
kchk_01a22f6a8a88773da43fd3be429f0538	0	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kver_01a22f6a8a88765a8075a10b0fbeead8	[0.09967041,0.048828125,0.06713867,-0.1607666,-0.057159424,-0.068603516,-0.22143555,0.16760254,0.0007429123,0.20532227,-0.2841797,-0.07385254,-0.20300293,0.044006348,0.0960083,-0.15612793,0.115600586,-0.15734863,-0.12915039,0.113464355,0.053497314,0.047698975,0.013008118,-0.078125,-0.17102051,-0.04660034,0.08520508,-0.02772522,0.31079102,0.27026367,-0.083862305,-0.16064453,0.1538086,-0.14453125,0.076171875,0.08691406,0.11077881,-0.045166016,0.03640747,-0.07525635,0.038604736,0.05569458,-0.05038452,0.15234375,-0.12841797,-0.20214844,-0.017150879,-0.10876465,0.039886475,-0.022216797,0.12298584,-0.10467529,0.15063477,0.076416016,-0.10217285,-0.115112305,-0.14282227,-0.045135498,-0.012893677,0.009963989,0.20373535,0.0357666,-0.12609863,0.07305908]
kchk_01a22f6a8ca57805b4845b9222987ced	0	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kver_01a22f6a8ca576a993a8903960528c90	[-0.0046539307,-0.23046875,-0.0657959,-0.010848999,-0.042633057,0.1394043,-0.08148193,0.071777344,0.19494629,0.1673584,-0.040008545,0.16137695,0.11303711,-0.023605347,0.18676758,-0.079589844,-0.038116455,0.2010498,-0.09661865,0.14538574,0.04711914,-0.06866455,0.101501465,-0.11694336,-0.053741455,0.13720703,0.061279297,0.1940918,0.03353882,0.013336182,0.090148926,-0.024978638,0.073913574,0.21862793,0.03387451,0.2590332,-0.11242676,0.2265625,0.06384277,-0.10986328,-0.115600586,0.11199951,0.14233398,-0.014862061,0.0027332306,0.15893555,-0.025161743,-0.081970215,0.05718994,-0.06719971,-0.13684082,-0.008682251,0.23071289,0.15551758,0.18383789,-0.089660645,-0.10852051,-0.13391113,0.106933594,-0.018798828,0.115356445,-0.15905762,-0.03250122,0.2775879]
kchk_01a22f6a8a94791b9c4ad2b84175945d	0	acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	kver_01a22f6a8a94784caab11ce6b327afd2	[-0.09875488,-0.16418457,-0.07556152,-0.17468262,-0.11578369,-0.20227051,-0.21533203,-0.008331299,0.17919922,-0.2512207,0.06951904,0.20263672,-0.15454102,-0.13330078,0.053009033,-0.10559082,0.020568848,-0.10650635,-0.123535156,-0.20983887,0.05923462,-0.25219727,0.02368164,0.18164062,-0.14025879,0.051605225,-0.055541992,0.17077637,-0.029953003,0.20532227,0.013000488,0.019226074,0.13867188,0.06665039,0.033325195,-0.04977417,-0.057556152,0.07513428,0.028793335,0.03567505,-0.045562744,0.21130371,-0.109436035,0.35058594,0.13439941,0.11077881,-0.08728027,0.009429932,0.030395508,0.19396973,0.030410767,0.017623901,0.022232056,-0.02420044,0.025405884,-0.05697632,0.047851562,-0.12573242,0.031402588,-0.12878418,-0.14428711,0.01322937,0.010017395,-0.018081665]
\.

COPY memory.entity (id, tenant_id, kind, identifier, label, created_at) FROM stdin;
kent_01a22f6a8a247b4fa04774b6231a685c	acme	project	release	\N	2026-12-01 02:24:01.055487+00
\.

COPY memory.feed_event (tenant_id, "position", kind, document_id, version_id, at) FROM stdin;
acme	1	captured	kdoc_01a22f6a89b7730792745de164f88d4b	kver_01a22f6a89bd7fbe90b40d5311c1e921	2026-12-01 02:24:00.995932+00
acme	2	captured	kdoc_01a22f6a89b7730792745de164f88d4b	kver_01a22f6a8a007268a210fd08d8b0a911	2026-12-01 02:24:01.028645+00
acme	3	captured	kdoc_01a22f6a8a2273279d980905f93fe0cc	kver_01a22f6a8a2376ea80b696b4c1d72326	2026-12-01 02:24:01.064847+00
acme	4	captured	kdoc_01a22f6a8a337c2d8eb710341d4cf38d	kver_01a22f6a8a3477baaa68d55234e18978	2026-12-01 02:24:01.079031+00
acme	5	captured	kdoc_01a22f6a8a4c784886f0bc3ccbfc6b4e	kver_01a22f6a8a5177e3b9ff870e080d2ac1	2026-12-01 02:24:01.111248+00
acme	6	captured	kdoc_01a22f6a8a757a8fa91d9bdd4f4410af	kver_01a22f6a8a7677c7a6f121276cadb7d9	2026-12-01 02:24:01.148578+00
acme	7	captured	kdoc_01a22f6a8a877d82b747ed8e99bae86b	kver_01a22f6a8a88765a8075a10b0fbeead8	2026-12-01 02:24:01.162413+00
acme	8	captured	kdoc_01a22f6a8a94773081915e10c47ec7b0	kver_01a22f6a8a94784caab11ce6b327afd2	2026-12-01 02:24:01.175606+00
acme	9	forgotten	kdoc_01a22f6a8a4c784886f0bc3ccbfc6b4e	\N	2026-12-01 02:24:01.241149+00
acme	10	captured	kdoc_01a22f6a8ae17b6faa44975d47429481	kver_01a22f6a8ae17cb89ed6253667727d69	2026-12-01 02:24:01.252256+00
acme	11	forgotten	kdoc_01a22f6a8ae17b6faa44975d47429481	\N	2026-12-01 02:24:01.295765+00
acme	12	purged	kdoc_01a22f6a8ae17b6faa44975d47429481	\N	2026-12-01 02:24:01.324073+00
acme	13	reclassed	kdoc_01a22f6a8a2273279d980905f93fe0cc	kver_01a22f6a8a2376ea80b696b4c1d72326	2026-12-01 02:24:01.347068+00
acme	14	captured	kdoc_01a22f6a8ca1770eba46b26b18bd1c81	kver_01a22f6a8ca576a993a8903960528c90	2026-12-01 02:24:01.718801+00
\.

COPY memory.generation (id, tenant_id, state, recipe, model_key, dims, caught_up_to, created_at, state_at) FROM stdin;
trun_01a22f6a8cdc7f758015f3197e31d0e5	acme	staged	{"chunk": {"strategy": "token.recursive", "maxTokens": 220, "minTokens": 40, "overlapTokens": 30}, "embed": {"model": "two", "style": "openai", "baseUrl": "http://endpoint.of.the.release", "context": true, "apiKeyEnv": null, "neighbours": false, "maxInputTokens": null}, "fusion": {"k": 60, "method": "adaptive", "lexical": "bm25", "lexicalWeight": 0.45, "neighbourWeight": 0.0, "surroundingsWeight": 0.5}, "rerank": null, "history": false, "mmrLambda": 1.0, "overfetch": 5, "authorityWeight": 0.5, "recencyHalfLifeDays": 30.0}	394bb6ba23279a63	96	14	2026-12-01 02:24:01.76165+00	2026-12-01 02:24:02.123503+00
kgen_01a22f6a89b27e5693ab5059e1dabc20	acme	live	{"chunk": {"strategy": "token.recursive", "maxTokens": 220, "minTokens": 40, "overlapTokens": 30}, "embed": {"model": "one", "style": "openai", "baseUrl": "http://endpoint.of.the.release", "context": true, "apiKeyEnv": null, "neighbours": false, "maxInputTokens": null}, "fusion": {"k": 60, "method": "adaptive", "lexical": "bm25", "lexicalWeight": 0.45, "neighbourWeight": 0.0, "surroundingsWeight": 0.5}, "rerank": null, "history": false, "mmrLambda": 1.0, "overfetch": 5, "authorityWeight": 0.5, "recencyHalfLifeDays": 30.0}	68450137d11a7132	64	14	2026-12-01 02:24:00.94756+00	2026-12-01 02:24:02.123907+00
\.

COPY memory.grant_rule (id, tenant_id, principal_id, role_id, resource, action, effect, origin, conditions, expires_at, created_at) FROM stdin;
mgrt_01a22f6a89977fd592ffcc2ddb356710	acme	ann	\N	memory	add	allow	system	\N	\N	2026-12-01 02:24:00.921372+00
mgrt_01a22f6a899a758d965ec8084ddd679d	acme	ann	\N	memory	search	allow	system	\N	\N	2026-12-01 02:24:00.922648+00
mgrt_01a22f6a899b709fb2652633afb1afd3	acme	ann	\N	memory	forget	allow	system	\N	\N	2026-12-01 02:24:00.923313+00
mgrt_01a22f6a899b7b058ac0768e40be53c3	acme	ann	\N	memory	purge	allow	system	\N	\N	2026-12-01 02:24:00.923936+00
mgrt_01a22f6a899c7485a2b82377ed3f1f8d	acme	ann	\N	memory	operate	allow	system	\N	\N	2026-12-01 02:24:00.924517+00
mgrt_01a22f6a899c7e47a34c6ee4d410043f	acme	bob	\N	memory	add	allow	system	\N	\N	2026-12-01 02:24:00.925107+00
mgrt_01a22f6a899d77f68ce49ea344b30114	acme	bob	\N	memory	search	allow	system	\N	\N	2026-12-01 02:24:00.92567+00
mgrt_01a22f6a899d7fbc8e0b7859bdb695e5	acme	bob	\N	memory	forget	allow	system	\N	\N	2026-12-01 02:24:00.926163+00
mgrt_01a22f6a899e7762bab7db73711d77bc	acme	bob	\N	memory	purge	allow	system	\N	\N	2026-12-01 02:24:00.926702+00
mgrt_01a22f6a899f7050b1e95b639b803111	acme	bob	\N	memory	operate	allow	system	\N	\N	2026-12-01 02:24:00.927191+00
mgrt_01a22f6a8b447c0fa8c3e79169b5425f	acme	bob	\N	memory.space:*	search	allow	system	\N	\N	2026-12-01 02:24:01.349046+00
mgrt_01a22f6a8b4a70d98730975fdfc39508	acme	bob	\N	memory.tenant:acme	search	allow	system	\N	\N	2026-12-01 02:24:01.354328+00
\.

COPY memory.idempotency_key (tenant_id, principal_id, key, body_hash, document_id, version_id, status, grants_materialized, created_at, expires_at) FROM stdin;
acme	ann	release-0	480bc01265e767ef2f25817ccce5d793258807e475ded4fe52e05dad0e981f1a	kdoc_01a22f6a89b7730792745de164f88d4b	kver_01a22f6a89bd7fbe90b40d5311c1e921	captured	\N	2026-12-01 02:24:00.98912+00	2026-12-02 02:24:00.98912+00
acme	ann	release-1	3ff7b169a42bf3b38d6653dfd237bf9fa014ba17a51bd6dcc085ad397e187133	kdoc_01a22f6a89b7730792745de164f88d4b	kver_01a22f6a8a007268a210fd08d8b0a911	captured	\N	2026-12-01 02:24:01.026232+00	2026-12-02 02:24:01.026232+00
acme	ann	release-2	b0dceef5ce5869bc4fb8e3c02047c4497ea9c5626599be71ad79c56957afacfc	kdoc_01a22f6a8a2273279d980905f93fe0cc	kver_01a22f6a8a2376ea80b696b4c1d72326	captured	\N	2026-12-01 02:24:01.062741+00	2026-12-02 02:24:01.062741+00
acme	ann	release-3	3f95e9e7720d7fd3d38084abf3ac4f8c13acc24003604387b933bdcf892a0997	kdoc_01a22f6a8a337c2d8eb710341d4cf38d	kver_01a22f6a8a3477baaa68d55234e18978	captured	\N	2026-12-01 02:24:01.077468+00	2026-12-02 02:24:01.077468+00
acme	ann	release-4	8663c7e22f219d6bdd64b82cc64c92b0ae585c6bd818c13477db4dd573f41733	kdoc_01a22f6a8a4c784886f0bc3ccbfc6b4e	kver_01a22f6a8a5177e3b9ff870e080d2ac1	captured	\N	2026-12-01 02:24:01.106537+00	2026-12-02 02:24:01.106537+00
acme	ann	release-5	ac28f5fa2c28b2f56eebfb25a1de0b4748dc477aef5bb17e9f027e3ab5c8612e	kdoc_01a22f6a8a757a8fa91d9bdd4f4410af	kver_01a22f6a8a7677c7a6f121276cadb7d9	captured	\N	2026-12-01 02:24:01.145008+00	2026-12-02 02:24:01.145008+00
acme	ann	release-6	3b1fa8c577daa25852a82546daca42524590a2ebeafdfb21058c538bd9c6685a	kdoc_01a22f6a8a877d82b747ed8e99bae86b	kver_01a22f6a8a88765a8075a10b0fbeead8	captured	\N	2026-12-01 02:24:01.160879+00	2026-12-02 02:24:01.160879+00
\.

COPY memory.installation (only_row, hash_key, created_at) FROM stdin;
t	b7f2749f-bf98-4699-8170-96eaccbb5428617ac976-21df-489f-b692-c7f1891e9b5d	2026-12-01 02:24:00.497531+00
\.

COPY memory.lexical_corpus (tenant_id, generation_id, chunk_count, total_length, through_position, refreshed_at) FROM stdin;
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	8	44	14	2026-12-01 02:24:02.146019+00
\.

COPY memory.lexical_term (tenant_id, generation_id, term_hash, chunk_count) FROM stdin;
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	2964934819034277855	3
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	-5985995015422025507	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	6438815332634834700	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	-2253052949344889840	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	-1041982772389555721	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	3045949496369940598	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	-4558487804381803171	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	1396638940228962168	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	-2368913018153271462	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	7869641992678908641	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	3704152583188650923	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	3494259739023043411	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	-4244878216417268183	2
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	4055282346202127456	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	8680131335536356089	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	981282877863810836	2
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	4905155847664256444	2
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	-3265849051937491798	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	5140194142998662089	1
acme	kgen_01a22f6a89b27e5693ab5059e1dabc20	-3534001526875870629	1
\.

COPY memory.migration (name, checksum, applied_at) FROM stdin;
0001_facts.sql	39c8b1dae4b5b532df5412135287386715ab93763088da691074345b89d5e575	2026-12-01 02:24:00.570386+00
0002_derivations.sql	ad7ca19a098feae185985863926f522483db3adb39da42ae2921816cf1ee2f41	2026-12-01 02:24:00.642296+00
0003_access.sql	d8f4851c1ebc7eb47a8a64d7f98502ff878a94ee6303cd3b8066c3cf3a6050d3	2026-12-01 02:24:00.698197+00
0004_feed_and_process.sql	750b441ec438247e6b228f9eaf2ad54bb4871705a29627eadaf5d6a654d1b285	2026-12-01 02:24:00.726987+00
0005_transforms.sql	c6c50452df98d691c4f1fe8f44e89f0210a847606ea052b48d408c39b0cb6910	2026-12-01 02:24:00.761273+00
\.

COPY memory.principal_role (tenant_id, principal_id, role_id, created_at) FROM stdin;
acme	bob	readers	2026-12-01 02:24:02.148206+00
\.

COPY memory.process_request (version_id, processor, tenant_id, state, attempts, last_error, claims, held_until, updated_at) FROM stdin;
kver_01a22f6a8a7677c7a6f121276cadb7d9	tagger	acme	pending	0	\N	0	\N	2026-12-01 02:24:01.145063+00
\.

COPY memory.raw_capture (id, tenant_id, document_id, source_hash, adapter, raw_text, raw_bytes, fetched_at) FROM stdin;
kraw_01a22f6a89be71ae9fe21a1916173807	acme	kdoc_01a22f6a89b7730792745de164f88d4b	9ddff9dc8e57aa80333a2166586bab9c4af44fcfd5cd598eee7071e0aeab4dca	http	{"external_ref": "harbour", "title": "Harbour", "text": "The boats lie by the harbour.", "share": {"tenant": true}}	\N	2026-12-01 02:24:00.991454+00
kraw_01a22f6a8a0176d3a46b52780bae499a	acme	kdoc_01a22f6a89b7730792745de164f88d4b	42c56db0dcba9244802cc141efdeeb386220678cc00aedc0457897e1529c1b42	http	{"external_ref": "harbour", "title": "Harbour", "text": "The boats lie by the old harbour.", "share": {"tenant": true}}	\N	2026-12-01 02:24:01.026421+00
kraw_01a22f6a8a257dfd9d24f0e0945f1db2	acme	kdoc_01a22f6a8a2273279d980905f93fe0cc	6a7ddb5cbfa0152f54999fd48fb6f4dc47607095078bf8b10c7cb514f3ffd9de	http	{"external_ref": "plan", "title": "Plan", "text": "Ship on Friday.", "access_tags": ["memory.space:eng"], "entities": [{"kind": "project", "identifier": "release"}], "occurred_at": "2026-12-01T02:24:00.927892+00:00"}	\N	2026-12-01 02:24:01.06346+00
kraw_01a22f6a8a3479818039b43765c4ad8d	acme	kdoc_01a22f6a8a337c2d8eb710341d4cf38d	076be9cad03760aefe328c5e7c7e0d3d7e2b7b8a2b53c85f4ce37ae681e663ae	http	{"external_ref": "due", "title": "Due", "text": "The offer ends soon.", "temporal_class": "deadline", "valid_until": "2036-11-28T02:24:00.927892+00:00"}	\N	2026-12-01 02:24:01.077648+00
kraw_01a22f6a8a76797694648bbb826bb8c8	acme	kdoc_01a22f6a8a757a8fa91d9bdd4f4410af	cee50d5e35d98e357d8919c80df351eb252ec076e7848c1c70fca6c6491449c1	http	{"external_ref": "tagged", "title": "Tagged", "text": "A host tags this.", "process": ["tagger"]}	\N	2026-12-01 02:24:01.145747+00
kraw_01a22f6a8a8877bcb8da5b792b948a49	acme	kdoc_01a22f6a8a877d82b747ed8e99bae86b	22a90e0329d67ea980aa64225ea4db15c4542d1b98d2917102e01cd7916aad8b	http	{"external_ref": "passing", "title": "Passing", "text": "Only for today.", "retention_class": "ephemeral"}	\N	2026-12-01 02:24:01.161087+00
kraw_01a22f6a8a947992a94cd28c642709de	acme	kdoc_01a22f6a8a94773081915e10c47ec7b0	554a81f791c5c12676baa1f0d0b239bae5a5284bc6b55a74ba50f28b5587fe47	http	{"title": "Batch", "text": "One of a batch."}	\N	2026-12-01 02:24:01.174386+00
kraw_01a22f6a8a5179b6b5fa18d45e7a8fe1	acme	kdoc_01a22f6a8a4c784886f0bc3ccbfc6b4e	forgotten:kraw_01a22f6a8a5179b6b5fa18d45e7a8fe1	http	[redacted]	\N	2026-12-01 02:24:01.106753+00
kraw_01a22f6a8ca5789c9e4b63beac6fabe3	acme	kdoc_01a22f6a8ca1770eba46b26b18bd1c81	739a588364a4255e5a2e9ec2bdfe68c2467ff8bf02bb7f0a4afb437f4f954fd9	claim	{"adapter": "claim", "external_ref": "a/kver_01a22f6a8a007268a210fd08d8b0a911/0", "title": "Old", "text": "The harbour is old.", "derived_from": ["kver_01a22f6a8a007268a210fd08d8b0a911"], "share": {"principals": ["carl"]}, "request_widening": true}	\N	2026-12-01 02:24:01.709731+00
\.

COPY memory.tenant_counter (tenant_id, "position") FROM stdin;
acme	14
\.

COPY memory.transform_config (id, tenant_id, name, version, params, created_at) FROM stdin;
tcfg_01a22f6a8cda7d69bebcb86e037d1cb7	acme	other	1	{"embed": {"model": "two"}}	2026-12-01 02:24:01.756227+00
\.

COPY memory.transform_failure (run_id, tenant_id, version_id, error, attempts, updated_at) FROM stdin;
trun_01a22f6a8cdc7f758015f3197e31d0e5	acme	kver_01a22f6a89bd7fbe90b40d5311c1e921	It would not embed.	1	2026-12-01 02:24:02.149963+00
\.

COPY memory.transform_run (id, tenant_id, config_id, generation_id, status, scope, walk_goal, walk_total, raw_count, version_count, chunk_count, failed_count, error, review, archived_live_generation, archived_live_model_key, promoted_at, created_at, finished_at) FROM stdin;
trun_01a22f6a8cdc7f758015f3197e31d0e5	acme	tcfg_01a22f6a8cda7d69bebcb86e037d1cb7	trun_01a22f6a8cdc7f758015f3197e31d0e5	completed	{}	14	7	7	7	7	0	\N	\N	\N	\N	\N	2026-12-01 02:24:01.764132+00	2026-12-01 02:24:02.004855+00
\.

COPY memory.version (id, tenant_id, document_id, version, status, status_at, status_reason, title, kind, supersedes_version_id, content_hash, occurred_at, ingested_at, valid_from, valid_until, temporal_class, retention_class, provenance, source_class, created_by_principal_id, created_by_kind, generator_agent_id, authority, actor_count, has_social_signal, attributes, raw_capture_id, feed_position) FROM stdin;
kver_01a22f6a89bd7fbe90b40d5311c1e921	acme	kdoc_01a22f6a89b7730792745de164f88d4b	1	superseded	2026-12-01 02:24:01.025001+00	\N	Harbour	note	\N	e803d79c544a2f20bb5cd2962884eb4cb28bc2fb00ad90319a86ab6a39beb5d5	2026-12-01 02:24:00.991454+00	2026-12-01 02:24:00.991454+00	\N	\N	event	standard	stated	native	ann	human	\N	0.42	1	f	{}	kraw_01a22f6a89be71ae9fe21a1916173807	1
kver_01a22f6a8a007268a210fd08d8b0a911	acme	kdoc_01a22f6a89b7730792745de164f88d4b	2	active	2026-12-01 02:24:01.026421+00	\N	Harbour	note	kver_01a22f6a89bd7fbe90b40d5311c1e921	6016c469f8054a39d6f832935f34a5814670fc4b86653e4e5a2a779a10f4afb2	2026-12-01 02:24:01.026421+00	2026-12-01 02:24:01.026421+00	\N	\N	event	standard	stated	native	ann	human	\N	0.42	1	f	{}	kraw_01a22f6a8a0176d3a46b52780bae499a	2
kver_01a22f6a8a3477baaa68d55234e18978	acme	kdoc_01a22f6a8a337c2d8eb710341d4cf38d	1	active	2026-12-01 02:24:01.077648+00	\N	Due	note	\N	48ecee09e819e5a3acf04352e9678870d8261af95eb0421571c824c5a32e6022	2026-12-01 02:24:01.077648+00	2026-12-01 02:24:01.077648+00	\N	2036-11-28 02:24:00.927892+00	deadline	standard	stated	native	ann	human	\N	0.42	1	f	{}	kraw_01a22f6a8a3479818039b43765c4ad8d	4
kver_01a22f6a8a7677c7a6f121276cadb7d9	acme	kdoc_01a22f6a8a757a8fa91d9bdd4f4410af	1	active	2026-12-01 02:24:01.145747+00	\N	Tagged	note	\N	ce5be044bbcdb301e52234cbe7a53cb82cb74fa8889a3f0b70d018f01afe72cc	2026-12-01 02:24:01.145747+00	2026-12-01 02:24:01.145747+00	\N	\N	event	standard	stated	native	ann	human	\N	0.42	1	f	{}	kraw_01a22f6a8a76797694648bbb826bb8c8	6
kver_01a22f6a8a88765a8075a10b0fbeead8	acme	kdoc_01a22f6a8a877d82b747ed8e99bae86b	1	active	2026-12-01 02:24:01.161087+00	\N	Passing	note	\N	8df9ddadd4c82bae5ee2e7308b80faa074785c02d547cfd2310614463a45ec5c	2026-12-01 02:24:01.161087+00	2026-12-01 02:24:01.161087+00	\N	\N	event	ephemeral	stated	native	ann	human	\N	0.42	1	f	{}	kraw_01a22f6a8a8877bcb8da5b792b948a49	7
kver_01a22f6a8a94784caab11ce6b327afd2	acme	kdoc_01a22f6a8a94773081915e10c47ec7b0	1	active	2026-12-01 02:24:01.174386+00	\N	Batch	note	\N	ec8e4bb375cae3224372abb880b2d0e55fb4d3f56303c5431d3d4c0be6b83098	2026-12-01 02:24:01.174386+00	2026-12-01 02:24:01.174386+00	\N	\N	event	standard	stated	native	ann	human	\N	0.42	1	f	{}	kraw_01a22f6a8a947992a94cd28c642709de	8
kver_01a22f6a8a5177e3b9ff870e080d2ac1	acme	kdoc_01a22f6a8a4c784886f0bc3ccbfc6b4e	1	tombstoned	2026-12-01 02:24:01.212833+00	asked to	[redacted]	[redacted]	\N	forgotten:kver_01a22f6a8a5177e3b9ff870e080d2ac1	2026-12-01 02:24:01.106753+00	2026-12-01 02:24:01.106753+00	\N	\N	event	standard	stated	native	ann	human	\N	0.42	1	f	{}	kraw_01a22f6a8a5179b6b5fa18d45e7a8fe1	5
kver_01a22f6a8a2376ea80b696b4c1d72326	acme	kdoc_01a22f6a8a2273279d980905f93fe0cc	1	active	2026-12-01 02:24:01.06346+00	\N	Plan	note	\N	a7d3cfff99ef4dc6b27d33f8eaf2a5346e2f717d0447ee4df147eb2793205efb	2026-12-01 02:24:00.927892+00	2026-12-01 02:24:01.06346+00	\N	\N	event	durable	stated	native	ann	human	\N	0.42	1	f	{}	kraw_01a22f6a8a257dfd9d24f0e0945f1db2	3
kver_01a22f6a8ca576a993a8903960528c90	acme	kdoc_01a22f6a8ca1770eba46b26b18bd1c81	1	active	2026-12-01 02:24:01.709731+00	\N	Old	note	\N	fede56ce11407433aee4b547ed540ffc7982ed909683f9257eb63c102e8e0ebb	2026-12-01 02:24:01.709731+00	2026-12-01 02:24:01.709731+00	\N	\N	event	standard	stated	derived	bob	human	\N	0.42	1	f	{}	kraw_01a22f6a8ca5789c9e4b63beac6fabe3	14
\.

ALTER TABLE ONLY memory.api_token
    ADD CONSTRAINT api_token_pkey PRIMARY KEY (id);

ALTER TABLE ONLY memory.api_token
    ADD CONSTRAINT api_token_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY memory.audience_receipt
    ADD CONSTRAINT audience_receipt_pkey PRIMARY KEY (request_id);

ALTER TABLE ONLY memory.audience_request
    ADD CONSTRAINT audience_request_pkey PRIMARY KEY (id);

ALTER TABLE ONLY memory.chunk
    ADD CONSTRAINT chunk_pkey PRIMARY KEY (id);

ALTER TABLE ONLY memory.chunk
    ADD CONSTRAINT chunk_version_id_generation_id_ordinal_key UNIQUE (version_id, generation_id, ordinal);

ALTER TABLE ONLY memory.consumer_cursor
    ADD CONSTRAINT consumer_cursor_pkey PRIMARY KEY (tenant_id, consumer);

ALTER TABLE ONLY memory.derivation
    ADD CONSTRAINT derivation_pkey PRIMARY KEY (version_id, generation_id);

ALTER TABLE ONLY memory.distill_quarantine
    ADD CONSTRAINT distill_quarantine_pkey PRIMARY KEY (tenant_id, agent_id, version_id);

ALTER TABLE ONLY memory.document
    ADD CONSTRAINT document_pkey PRIMARY KEY (id);

ALTER TABLE ONLY memory.document
    ADD CONSTRAINT document_tenant_id_adapter_external_ref_key UNIQUE (tenant_id, adapter, external_ref);

ALTER TABLE ONLY memory.edge
    ADD CONSTRAINT edge_pkey PRIMARY KEY (id);

ALTER TABLE ONLY memory.edge
    ADD CONSTRAINT edge_tenant_id_rel_from_id_to_id_key UNIQUE (tenant_id, rel, from_id, to_id);

ALTER TABLE ONLY memory.embed_model
    ADD CONSTRAINT embed_model_pkey PRIMARY KEY (tenant_id, model_key);

ALTER TABLE ONLY memory.embedding_394bb6ba23279a63
    ADD CONSTRAINT embedding_394bb6ba23279a63_pkey PRIMARY KEY (chunk_id, slot);

ALTER TABLE ONLY memory.embedding_68450137d11a7132
    ADD CONSTRAINT embedding_68450137d11a7132_pkey PRIMARY KEY (chunk_id, slot);

ALTER TABLE ONLY memory.entity
    ADD CONSTRAINT entity_pkey PRIMARY KEY (id);

ALTER TABLE ONLY memory.entity
    ADD CONSTRAINT entity_tenant_id_kind_identifier_key UNIQUE (tenant_id, kind, identifier);

ALTER TABLE ONLY memory.feed_event
    ADD CONSTRAINT feed_event_pkey PRIMARY KEY (tenant_id, "position");

ALTER TABLE ONLY memory.generation
    ADD CONSTRAINT generation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY memory.grant_rule
    ADD CONSTRAINT grant_rule_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY memory.idempotency_key
    ADD CONSTRAINT idempotency_key_pkey PRIMARY KEY (tenant_id, principal_id, key);

ALTER TABLE ONLY memory.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY memory.lexical_corpus
    ADD CONSTRAINT lexical_corpus_pkey PRIMARY KEY (tenant_id, generation_id);

ALTER TABLE ONLY memory.lexical_term
    ADD CONSTRAINT lexical_term_pkey PRIMARY KEY (tenant_id, generation_id, term_hash);

ALTER TABLE ONLY memory.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (name);

ALTER TABLE ONLY memory.principal_role
    ADD CONSTRAINT principal_role_pkey PRIMARY KEY (tenant_id, principal_id, role_id);

ALTER TABLE ONLY memory.process_request
    ADD CONSTRAINT process_request_pkey PRIMARY KEY (version_id, processor);

ALTER TABLE ONLY memory.raw_capture
    ADD CONSTRAINT raw_capture_pkey PRIMARY KEY (id);

ALTER TABLE ONLY memory.raw_capture
    ADD CONSTRAINT raw_capture_tenant_id_source_hash_key UNIQUE (tenant_id, source_hash);

ALTER TABLE ONLY memory.tenant_counter
    ADD CONSTRAINT tenant_counter_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY memory.transform_config
    ADD CONSTRAINT transform_config_pkey PRIMARY KEY (id);

ALTER TABLE ONLY memory.transform_config
    ADD CONSTRAINT transform_config_tenant_id_name_version_key UNIQUE (tenant_id, name, version);

ALTER TABLE ONLY memory.transform_failure
    ADD CONSTRAINT transform_failure_pkey PRIMARY KEY (run_id, version_id);

ALTER TABLE ONLY memory.transform_run
    ADD CONSTRAINT transform_run_generation_id_key UNIQUE (generation_id);

ALTER TABLE ONLY memory.transform_run
    ADD CONSTRAINT transform_run_pkey PRIMARY KEY (id);

ALTER TABLE ONLY memory.version
    ADD CONSTRAINT version_document_id_version_key UNIQUE (document_id, version);

ALTER TABLE ONLY memory.version
    ADD CONSTRAINT version_pkey PRIMARY KEY (id);

CREATE INDEX api_token_tenant ON memory.api_token USING btree (tenant_id, principal_id);

CREATE INDEX audience_receipt_document ON memory.audience_receipt USING btree (tenant_id, document_id);

CREATE INDEX audience_request_document ON memory.audience_request USING btree (document_id);

CREATE INDEX audience_request_open ON memory.audience_request USING btree (tenant_id, state);

CREATE INDEX audience_request_unseen ON memory.audience_request USING btree (created_at) WHERE ((state = 'open'::text) AND (workflow_seen_at IS NULL));

CREATE INDEX audience_request_version ON memory.audience_request USING btree (version_id);

CREATE INDEX chunk_generation ON memory.chunk USING btree (tenant_id, generation_id, version_id);

CREATE INDEX chunk_text_fts ON memory.chunk USING gin (text_fts);

CREATE INDEX derivation_generation ON memory.derivation USING btree (generation_id, version_id);

CREATE INDEX derivation_pending ON memory.derivation USING btree (updated_at) WHERE (embed_state = 'pending'::text);

CREATE INDEX derivation_todo ON memory.derivation USING btree (tenant_id, generation_id, embed_state) WHERE (embed_state <> 'embedded'::text);

CREATE INDEX distill_quarantine_version ON memory.distill_quarantine USING btree (version_id);

CREATE INDEX document_creator ON memory.document USING btree (tenant_id, created_by_principal_id, last_seen_at DESC, id);

CREATE INDEX document_recent ON memory.document USING btree (tenant_id, last_seen_at DESC, id);

CREATE INDEX document_stream ON memory.document USING btree (tenant_id, stream, occurred_at, id);

CREATE INDEX document_tags ON memory.document USING gin (access_tags);

CREATE INDEX edge_from ON memory.edge USING btree (tenant_id, from_id, rel);

CREATE INDEX edge_to ON memory.edge USING btree (tenant_id, to_id, rel);

CREATE INDEX embed_model_endpoint ON memory.embed_model USING btree (tenant_id, base_url, model);

CREATE INDEX embedding_394bb6ba23279a63_hnsw ON memory.embedding_394bb6ba23279a63 USING hnsw (embedding public.halfvec_cosine_ops) WITH (ef_construction='128');

CREATE INDEX embedding_394bb6ba23279a63_version ON memory.embedding_394bb6ba23279a63 USING btree (tenant_id, generation_id, version_id);

CREATE INDEX embedding_68450137d11a7132_hnsw ON memory.embedding_68450137d11a7132 USING hnsw (embedding public.halfvec_cosine_ops) WITH (ef_construction='128');

CREATE INDEX embedding_68450137d11a7132_version ON memory.embedding_68450137d11a7132 USING btree (tenant_id, generation_id, version_id);

CREATE UNIQUE INDEX generation_one_live ON memory.generation USING btree (tenant_id) WHERE (state = 'live'::text);

CREATE INDEX generation_tenant ON memory.generation USING btree (tenant_id, state);

CREATE INDEX grant_rule_principal ON memory.grant_rule USING btree (tenant_id, principal_id) WHERE (principal_id IS NOT NULL);

CREATE INDEX grant_rule_resource ON memory.grant_rule USING btree (tenant_id, resource);

CREATE INDEX grant_rule_role ON memory.grant_rule USING btree (tenant_id, role_id) WHERE (role_id IS NOT NULL);

CREATE INDEX idempotency_key_expiry ON memory.idempotency_key USING btree (expires_at);

CREATE INDEX process_request_pending ON memory.process_request USING btree (updated_at) WHERE (state = 'pending'::text);

CREATE INDEX raw_capture_document ON memory.raw_capture USING btree (document_id);

CREATE INDEX transform_failure_version ON memory.transform_failure USING btree (version_id);

CREATE INDEX transform_run_tenant ON memory.transform_run USING btree (tenant_id, created_at DESC);

CREATE INDEX version_ephemeral ON memory.version USING btree (tenant_id, COALESCE(valid_until, (((ingested_at AT TIME ZONE 'UTC'::text) + '7 days'::interval) AT TIME ZONE 'UTC'::text))) WHERE ((retention_class = 'ephemeral'::text) AND (status = 'active'::text));

CREATE INDEX version_feed ON memory.version USING btree (tenant_id, feed_position);

CREATE UNIQUE INDEX version_one_active ON memory.version USING btree (document_id) WHERE (status = 'active'::text);

CREATE INDEX version_raw_capture ON memory.version USING btree (raw_capture_id);

ALTER TABLE ONLY memory.audience_receipt
    ADD CONSTRAINT audience_receipt_request_id_fkey FOREIGN KEY (request_id) REFERENCES memory.audience_request(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.audience_request
    ADD CONSTRAINT audience_request_document_id_fkey FOREIGN KEY (document_id) REFERENCES memory.document(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.audience_request
    ADD CONSTRAINT audience_request_version_id_fkey FOREIGN KEY (version_id) REFERENCES memory.version(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.chunk
    ADD CONSTRAINT chunk_version_id_fkey FOREIGN KEY (version_id) REFERENCES memory.version(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.derivation
    ADD CONSTRAINT derivation_version_id_fkey FOREIGN KEY (version_id) REFERENCES memory.version(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.distill_quarantine
    ADD CONSTRAINT distill_quarantine_version_id_fkey FOREIGN KEY (version_id) REFERENCES memory.version(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.embedding_394bb6ba23279a63
    ADD CONSTRAINT embedding_394bb6ba23279a63_chunk_id_fkey FOREIGN KEY (chunk_id) REFERENCES memory.chunk(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.embedding_68450137d11a7132
    ADD CONSTRAINT embedding_68450137d11a7132_chunk_id_fkey FOREIGN KEY (chunk_id) REFERENCES memory.chunk(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.process_request
    ADD CONSTRAINT process_request_version_id_fkey FOREIGN KEY (version_id) REFERENCES memory.version(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.raw_capture
    ADD CONSTRAINT raw_capture_document_id_fkey FOREIGN KEY (document_id) REFERENCES memory.document(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.transform_failure
    ADD CONSTRAINT transform_failure_run_id_fkey FOREIGN KEY (run_id) REFERENCES memory.generation(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.transform_failure
    ADD CONSTRAINT transform_failure_version_id_fkey FOREIGN KEY (version_id) REFERENCES memory.version(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.transform_run
    ADD CONSTRAINT transform_run_config_id_fkey FOREIGN KEY (config_id) REFERENCES memory.transform_config(id);

ALTER TABLE ONLY memory.transform_run
    ADD CONSTRAINT transform_run_generation_id_fkey FOREIGN KEY (generation_id) REFERENCES memory.generation(id);

ALTER TABLE ONLY memory.version
    ADD CONSTRAINT version_document_id_fkey FOREIGN KEY (document_id) REFERENCES memory.document(id) ON DELETE CASCADE;

ALTER TABLE ONLY memory.version
    ADD CONSTRAINT version_raw_capture_id_fkey FOREIGN KEY (raw_capture_id) REFERENCES memory.raw_capture(id) ON DELETE CASCADE;
