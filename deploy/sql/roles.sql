-- Least privilege, once for each database, by a superuser before the first `memory migrate`; running it again is harmless.
--   psql "$SUPERUSER_URL" -v ON_ERROR_STOP=1 -f deploy/sql/roles.sql
-- Then a password for each role (\password memory_api), and a DATABASE_URL of its own for each process:
--   memory_owner   `memory migrate` (a job, not a service): owns the schema
--   memory_worker  the worker: reads and writes rows, makes and owns the tables and indexes of vectors
--   memory_api     the API and the memory command: reads and writes rows, and can change no table

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['memory_owner', 'memory_worker', 'memory_api'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS', name);
        END IF;
    END LOOP;
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO memory_owner, memory_worker, memory_api', current_database());
    EXECUTE format('GRANT CREATE ON DATABASE %I TO memory_owner', current_database());
END
$$;

-- Only a superuser may bring the extension in; `memory migrate` finds it there.
CREATE EXTENSION IF NOT EXISTS vector;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;

CREATE SCHEMA IF NOT EXISTS memory AUTHORIZATION memory_owner;
ALTER SCHEMA memory OWNER TO memory_owner;
GRANT USAGE ON SCHEMA memory TO memory_worker, memory_api;
GRANT CREATE ON SCHEMA memory TO memory_worker;

-- What is there already, and what later migrations and new models will bring.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA memory TO memory_worker, memory_api;
ALTER DEFAULT PRIVILEGES FOR ROLE memory_owner IN SCHEMA memory
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO memory_worker, memory_api;
ALTER DEFAULT PRIVILEGES FOR ROLE memory_owner IN SCHEMA memory GRANT REFERENCES ON TABLES TO memory_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE memory_worker IN SCHEMA memory
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO memory_api;

-- On a database that was migrated before: the vectors' foreign key, and a ledger that only migrations write.
DO $$
BEGIN
    IF to_regclass('memory.chunk') IS NOT NULL THEN
        GRANT REFERENCES ON memory.chunk TO memory_worker;
        REVOKE INSERT, UPDATE, DELETE ON memory.migration FROM memory_worker, memory_api;
    END IF;
END
$$;

ALTER ROLE memory_api SET idle_in_transaction_session_timeout = '60s';
ALTER ROLE memory_worker SET idle_in_transaction_session_timeout = '60s';
