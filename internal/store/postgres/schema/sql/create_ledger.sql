CREATE SCHEMA IF NOT EXISTS amends;
CREATE TABLE amends.schema_migrations (
    version    integer PRIMARY KEY CONSTRAINT schema_migrations_version CHECK (version >= 1),
    name       text COLLATE "C" NOT NULL,
    checksum   bytea NOT NULL CONSTRAINT schema_migrations_checksum CHECK (octet_length(checksum) = 32),
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
