-- Grants, roles, facade tokens, and audience widening.

CREATE TABLE memory.grant_rule (
    id text NOT NULL,
    tenant_id text NOT NULL,
    principal_id text,
    role_id text,
    resource text NOT NULL,
    action text NOT NULL,
    effect text NOT NULL CHECK (effect IN ('allow', 'deny', 'ask')),
    origin text NOT NULL CHECK (origin IN ('system', 'role', 'creator', 'invoker')),
    conditions jsonb,
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, id),
    CHECK ((principal_id IS NULL) <> (role_id IS NULL))
);
CREATE INDEX grant_rule_principal ON memory.grant_rule (tenant_id, principal_id) WHERE principal_id IS NOT NULL;
CREATE INDEX grant_rule_role ON memory.grant_rule (tenant_id, role_id) WHERE role_id IS NOT NULL;
CREATE INDEX grant_rule_resource ON memory.grant_rule (tenant_id, resource);

CREATE TABLE memory.principal_role (
    tenant_id text NOT NULL,
    principal_id text NOT NULL,
    role_id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, principal_id, role_id)
);

CREATE TABLE memory.api_token (
    id text PRIMARY KEY,
    token_hash text NOT NULL UNIQUE,
    tenant_id text NOT NULL,
    principal_id text NOT NULL,
    label text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX api_token_tenant ON memory.api_token (tenant_id, principal_id);

CREATE TABLE memory.audience_request (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    document_id text NOT NULL REFERENCES memory.document (id) ON DELETE CASCADE,
    version_id text NOT NULL REFERENCES memory.version (id) ON DELETE CASCADE,
    source_version_id text NOT NULL,
    tags text[] NOT NULL,
    state text NOT NULL CHECK (state IN ('open', 'approved', 'declined')),
    requested_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    decided_at timestamptz,
    workflow_seen_at timestamptz
);
COMMENT ON COLUMN memory.audience_request.workflow_seen_at IS 'its workflow has begun to wait; the reconciler starts those of open requests without one';
CREATE INDEX audience_request_open ON memory.audience_request (tenant_id, state);
CREATE INDEX audience_request_unseen ON memory.audience_request (created_at) WHERE state = 'open' AND workflow_seen_at IS NULL;
CREATE INDEX audience_request_document ON memory.audience_request (document_id);
CREATE INDEX audience_request_version ON memory.audience_request (version_id);

CREATE TABLE memory.audience_receipt (
    request_id text PRIMARY KEY REFERENCES memory.audience_request (id) ON DELETE CASCADE,
    tenant_id text NOT NULL,
    document_id text NOT NULL,
    version_id text NOT NULL,
    source_version_id text NOT NULL,
    tags text[] NOT NULL,
    approved_by text NOT NULL,
    approved_at timestamptz NOT NULL
);
CREATE INDEX audience_receipt_document ON memory.audience_receipt (tenant_id, document_id);
