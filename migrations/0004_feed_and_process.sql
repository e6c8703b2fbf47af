-- What followers must learn, and the durable to-do lists of processors and the distiller.

CREATE TABLE memory.tenant_counter (
    tenant_id text PRIMARY KEY,
    position bigint NOT NULL
) WITH (fillfactor = 20); -- the hottest rows there are: room for their next versions on the same page
COMMENT ON TABLE memory.tenant_counter IS 'advanced in the same last statement that writes feed events, so that commit order is position order';

CREATE TABLE memory.feed_event (
    tenant_id text NOT NULL,
    position bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('captured', 'retagged', 'shared', 'reclassed', 'deprecated', 'forgotten', 'purged')),
    document_id text NOT NULL,
    version_id text,
    at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, position)
);

CREATE TABLE memory.consumer_cursor (
    tenant_id text NOT NULL,
    consumer text NOT NULL,
    position bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, consumer)
);

CREATE TABLE memory.process_request (
    version_id text NOT NULL REFERENCES memory.version (id) ON DELETE CASCADE,
    processor text NOT NULL,
    tenant_id text NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'done', 'skipped', 'quarantined')),
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    claims integer NOT NULL DEFAULT 0,
    held_until timestamptz,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (version_id, processor)
);
CREATE INDEX process_request_pending ON memory.process_request (updated_at) WHERE state = 'pending';

CREATE TABLE memory.distill_quarantine (
    tenant_id text NOT NULL,
    agent_id text NOT NULL,
    version_id text NOT NULL REFERENCES memory.version (id) ON DELETE CASCADE,
    reason text NOT NULL,
    attempts integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    retry_requested_at timestamptz,
    PRIMARY KEY (tenant_id, agent_id, version_id)
);
CREATE INDEX distill_quarantine_version ON memory.distill_quarantine (version_id);
