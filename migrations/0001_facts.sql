-- Captured facts: they have no generation, and no transform, promote or demote rewrites or renumbers them.

CREATE TABLE memory.installation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    hash_key text NOT NULL DEFAULT gen_random_uuid()::text || gen_random_uuid()::text,
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE memory.installation IS 'hash_key keys the hashes of idempotency bodies, so that they identify no content';
INSERT INTO memory.installation DEFAULT VALUES;

CREATE TABLE memory.document (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    adapter text NOT NULL,
    external_ref text NOT NULL,
    title text NOT NULL,
    kind text NOT NULL,
    access_tags text[] NOT NULL DEFAULT '{}',
    attributes jsonb NOT NULL DEFAULT '{}',
    created_by_principal_id text NOT NULL,
    created_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    is_claim boolean NOT NULL DEFAULT false,
    -- One creator, adapter and audience: whoever sees one document of a stream sees them all. Claims, whose sources
    -- decide as well, are apart.
    stream bigint GENERATED ALWAYS AS (
        hash_array_extended(access_tags || ARRAY[adapter, created_by_principal_id, is_claim::text], 0)
    ) STORED,
    UNIQUE (tenant_id, adapter, external_ref)
);
COMMENT ON COLUMN memory.document.is_claim IS 'its newest version is derived from others';
COMMENT ON COLUMN memory.document.occurred_at IS 'of its newest version; orders a stream: what was said before and after';
CREATE INDEX document_stream ON memory.document (tenant_id, stream, occurred_at, id);
CREATE INDEX document_recent ON memory.document (tenant_id, last_seen_at DESC, id);
CREATE INDEX document_creator ON memory.document (tenant_id, created_by_principal_id, last_seen_at DESC, id);
CREATE INDEX document_tags ON memory.document USING gin (access_tags);

CREATE TABLE memory.raw_capture (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    document_id text NOT NULL REFERENCES memory.document (id) ON DELETE CASCADE,
    source_hash text NOT NULL,
    adapter text NOT NULL,
    raw_text text,
    raw_bytes bytea,
    fetched_at timestamptz NOT NULL,
    UNIQUE (tenant_id, source_hash),
    CHECK ((raw_text IS NULL) <> (raw_bytes IS NULL))
);
CREATE INDEX raw_capture_document ON memory.raw_capture (document_id);

CREATE TABLE memory.version (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    document_id text NOT NULL REFERENCES memory.document (id) ON DELETE CASCADE,
    version integer NOT NULL CHECK (version > 0),
    status text NOT NULL CHECK (status IN ('active', 'superseded', 'deprecated', 'archived', 'tombstoned')),
    status_at timestamptz NOT NULL,
    status_reason text,
    title text NOT NULL,
    kind text NOT NULL,
    supersedes_version_id text,
    content_hash text NOT NULL,
    occurred_at timestamptz NOT NULL,
    ingested_at timestamptz NOT NULL,
    valid_from timestamptz,
    valid_until timestamptz,
    temporal_class text NOT NULL CHECK (temporal_class IN ('event', 'deadline', 'state', 'lesson')),
    retention_class text NOT NULL CHECK (retention_class IN ('durable', 'standard', 'ephemeral', 'source_only')),
    provenance text NOT NULL CHECK (provenance IN ('stated', 'inferred', 'unknown')),
    source_class text NOT NULL CHECK (source_class IN ('native', 'imported', 'derived')),
    created_by_principal_id text NOT NULL,
    created_by_kind text NOT NULL CHECK (created_by_kind IN ('human', 'agent', 'system', 'adapter')),
    generator_agent_id text,
    authority double precision NOT NULL CHECK (authority BETWEEN 0 AND 1),
    actor_count integer NOT NULL DEFAULT 1,
    has_social_signal boolean NOT NULL DEFAULT false,
    attributes jsonb NOT NULL DEFAULT '{}',
    raw_capture_id text NOT NULL REFERENCES memory.raw_capture (id) ON DELETE CASCADE,
    feed_position bigint,
    UNIQUE (document_id, version)
);
COMMENT ON COLUMN memory.version.feed_position IS 'written by the last statement of the capture transaction; never null after commit';
CREATE UNIQUE INDEX version_one_active ON memory.version (document_id) WHERE status = 'active';
CREATE INDEX version_feed ON memory.version (tenant_id, feed_position);
CREATE INDEX version_raw_capture ON memory.version (raw_capture_id);
-- In UTC and back: adding days to a timestamptz depends on the session's zone and cannot be indexed.
CREATE INDEX version_ephemeral ON memory.version (
    tenant_id, (coalesce(valid_until, (ingested_at AT TIME ZONE 'UTC' + interval '7 days') AT TIME ZONE 'UTC'))
)
    WHERE retention_class = 'ephemeral' AND status = 'active';

CREATE TABLE memory.entity (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    kind text NOT NULL,
    identifier text NOT NULL,
    label text,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, kind, identifier)
);

CREATE TABLE memory.edge (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    rel text NOT NULL CHECK (rel IN ('mentions', 'about', 'authored_by', 'involves', 'part_of', 'derived_from', 'supports', 'contradicts', 'supersedes')),
    from_type text NOT NULL CHECK (from_type IN ('document', 'version', 'chunk', 'entity')),
    from_id text NOT NULL,
    to_type text NOT NULL CHECK (to_type IN ('document', 'version', 'chunk', 'entity')),
    to_id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, rel, from_id, to_id)
);
CREATE INDEX edge_from ON memory.edge (tenant_id, from_id, rel);
CREATE INDEX edge_to ON memory.edge (tenant_id, to_id, rel);

CREATE TABLE memory.idempotency_key (
    tenant_id text NOT NULL,
    principal_id text NOT NULL,
    key text NOT NULL,
    body_hash text NOT NULL,
    document_id text NOT NULL,
    version_id text NOT NULL,
    status text NOT NULL CHECK (status IN ('captured', 'noop')),
    grants_materialized boolean,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, principal_id, key)
);
CREATE INDEX idempotency_key_expiry ON memory.idempotency_key (expires_at);
