-- Derived data: one set per generation, rebuildable from the facts. `live` is a pointer: generation.state.
-- No foreign key to generation: each capture would lock that one row, and rows of a generation go in bounded batches.

CREATE TABLE memory.generation (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    state text NOT NULL CHECK (state IN ('building', 'staged', 'live', 'archived', 'failed', 'retired')),
    recipe jsonb NOT NULL,
    model_key text CHECK (model_key ~ '^[a-f0-9]{16}$'),
    dims integer CHECK (dims BETWEEN 64 AND 4000),
    caught_up_to bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    state_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON COLUMN memory.generation.caught_up_to IS 'the feed position up to which this generation has been walked';
CREATE UNIQUE INDEX generation_one_live ON memory.generation (tenant_id) WHERE state = 'live';
CREATE INDEX generation_tenant ON memory.generation (tenant_id, state);

CREATE TABLE memory.embed_model (
    tenant_id text NOT NULL,
    model_key text NOT NULL CHECK (model_key ~ '^[a-f0-9]{16}$'),
    base_url text NOT NULL,
    model text NOT NULL,
    style text NOT NULL CHECK (style IN ('openai', 'tei', 'ollama')),
    dims integer NOT NULL CHECK (dims BETWEEN 64 AND 4000),
    table_name text NOT NULL CHECK (table_name ~ '^embedding_[a-f0-9]{16}$'),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, model_key)
);
COMMENT ON TABLE memory.embed_model IS 'model_key = first 16 hex of sha256(base_url|model) at registration, never recomputed; the tenant "" is the engine''s own row';
CREATE INDEX embed_model_endpoint ON memory.embed_model (tenant_id, base_url, model);

CREATE TABLE memory.derivation (
    version_id text NOT NULL REFERENCES memory.version (id) ON DELETE CASCADE,
    generation_id text NOT NULL,
    tenant_id text NOT NULL,
    chunk_count integer NOT NULL,
    embed_state text NOT NULL CHECK (embed_state IN ('pending', 'embedded', 'not_configured', 'failed')),
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    held_until timestamptz,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (version_id, generation_id)
);
COMMENT ON TABLE memory.derivation IS 'the durable to-do list of the embedder and of catch-up; last_error carries no content';
COMMENT ON COLUMN memory.derivation.held_until IS 'a workflow is on it until then; the reconciler leaves it alone';
CREATE INDEX derivation_todo ON memory.derivation (tenant_id, generation_id, embed_state) WHERE embed_state <> 'embedded';
CREATE INDEX derivation_pending ON memory.derivation (updated_at) WHERE embed_state = 'pending';
CREATE INDEX derivation_generation ON memory.derivation (generation_id, version_id);

CREATE TABLE memory.chunk (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    generation_id text NOT NULL,
    document_id text NOT NULL,
    version_id text NOT NULL REFERENCES memory.version (id) ON DELETE CASCADE,
    ordinal integer NOT NULL,
    text text NOT NULL,
    context text NOT NULL DEFAULT '',
    grams text NOT NULL DEFAULT '',
    span_start integer NOT NULL,
    span_end integer NOT NULL,
    token_count integer NOT NULL,
    role text,
    -- The marker lexeme lets one GIN scan start from the generation (and so the tenant); the parser never makes such a word.
    text_fts tsvector NOT NULL GENERATED ALWAYS AS (
        setweight(to_tsvector('{{FTS_LANGUAGE}}'::regconfig, context), 'A')
        || setweight(to_tsvector('{{FTS_LANGUAGE}}'::regconfig, text), 'D')
        || to_tsvector('simple'::regconfig, grams)
        || array_to_tsvector(ARRAY['g:' || generation_id])
    ) STORED,
    UNIQUE (version_id, generation_id, ordinal)
);
COMMENT ON COLUMN memory.chunk.grams IS 'character n-grams of unspaced scripts, for the lexical channel';
CREATE INDEX chunk_text_fts ON memory.chunk USING gin (text_fts);
CREATE INDEX chunk_generation ON memory.chunk (tenant_id, generation_id, version_id);

CREATE TABLE memory.lexical_corpus (
    tenant_id text NOT NULL,
    generation_id text NOT NULL,
    chunk_count bigint NOT NULL,
    total_length bigint NOT NULL,
    through_position bigint NOT NULL DEFAULT 0,
    refreshed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, generation_id)
);

CREATE TABLE memory.lexical_term (
    tenant_id text NOT NULL,
    generation_id text NOT NULL,
    term_hash bigint NOT NULL,
    chunk_count integer NOT NULL,
    PRIMARY KEY (tenant_id, generation_id, term_hash)
);
COMMENT ON TABLE memory.lexical_term IS 'document frequencies by hashed term: statistics hold no words';
