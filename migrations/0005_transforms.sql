-- Recipes by name and version, their executions, and what would not derive.

CREATE TABLE memory.transform_config (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    name text NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    params jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant_id, name, version)
);

CREATE TABLE memory.transform_run (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    config_id text NOT NULL REFERENCES memory.transform_config (id),
    generation_id text NOT NULL UNIQUE REFERENCES memory.generation (id),
    status text NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
    scope jsonb NOT NULL DEFAULT '{}',
    walk_goal bigint,
    walk_total bigint NOT NULL DEFAULT 0,
    raw_count bigint NOT NULL DEFAULT 0,
    version_count bigint NOT NULL DEFAULT 0,
    chunk_count bigint NOT NULL DEFAULT 0,
    failed_count bigint NOT NULL DEFAULT 0,
    error text,
    review jsonb,
    archived_live_generation text,
    archived_live_model_key text,
    promoted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz
);
COMMENT ON COLUMN memory.transform_run.generation_id IS 'equal to id: a run is its own generation';
COMMENT ON COLUMN memory.transform_run.walk_goal IS 'the feed position at which the walk ends: the counter before it began; walk_total is what was derivable then';
CREATE INDEX transform_run_tenant ON memory.transform_run (tenant_id, created_at DESC);

CREATE TABLE memory.transform_failure (
    run_id text NOT NULL REFERENCES memory.generation (id) ON DELETE CASCADE,
    tenant_id text NOT NULL,
    version_id text NOT NULL REFERENCES memory.version (id) ON DELETE CASCADE,
    error text NOT NULL,
    attempts integer NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, version_id)
);
COMMENT ON COLUMN memory.transform_failure.run_id IS 'the run, which is its own generation; a tenant''s first generation was made by none and fails under its own id';
CREATE INDEX transform_failure_version ON memory.transform_failure (version_id);
