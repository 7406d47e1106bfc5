-- What an audit has verified of each partition (S10). The cut (frontier, next_sequence, cause_offset, output_offset: the view's
-- position there) and verified_at are those of the last cycle that found everything equal; status, differences and detail are the
-- last cycle's, at checked_at. full_at is when the last full cycle ended. state_* describe the saved state of the independent
-- recomputation, its bytes in audit_chunks: an accelerator for a restart, never an authority. NULL until there is one.
CREATE TABLE amends.audit_state (
    frontier       bigint NOT NULL CONSTRAINT audit_state_frontier CHECK (frontier >= 0),
    next_sequence  bigint NOT NULL CONSTRAINT audit_state_next_sequence CHECK (next_sequence >= 0),
    cause_offset   bigint NOT NULL CONSTRAINT audit_state_cause_offset CHECK (cause_offset >= -1),
    output_offset  bigint NOT NULL CONSTRAINT audit_state_output_offset CHECK (output_offset >= next_sequence),
    differences    bigint NOT NULL CONSTRAINT audit_state_differences CHECK (differences >= 0),
    state_frontier bigint,
    checked_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    verified_at    timestamptz,
    full_at        timestamptz,
    namespace_id   integer NOT NULL REFERENCES amends.namespaces,
    partition      integer NOT NULL CONSTRAINT audit_state_partition CHECK (partition BETWEEN 0 AND 1023),
    state_format   integer,
    state_chunks   integer,
    state_checksum bytea,
    status         text COLLATE "C" NOT NULL CONSTRAINT audit_state_status
                   CHECK (status IN ('UNAVAILABLE', 'INCOMPLETE', 'DRIFT', 'BLOCKED', 'PASS')),
    detail         text NOT NULL,
    PRIMARY KEY (namespace_id, partition),
    CONSTRAINT audit_state_saved CHECK (CASE num_nonnulls(state_frontier, state_format, state_chunks, state_checksum) WHEN 0 THEN true
        WHEN 4 THEN state_frontier >= 0 AND state_format >= 1 AND state_chunks BETWEEN 1 AND 128 AND octet_length(state_checksum) = 32 ELSE false END)
) WITH (fillfactor = 50);

CREATE TABLE amends.audit_chunks (
    namespace_id integer NOT NULL,
    partition    integer NOT NULL CONSTRAINT audit_chunks_partition CHECK (partition BETWEEN 0 AND 1023),
    chunk        integer NOT NULL CONSTRAINT audit_chunks_chunk CHECK (chunk BETWEEN 0 AND 127),
    data         bytea NOT NULL CONSTRAINT audit_chunks_data CHECK (octet_length(data) BETWEEN 1 AND 1048576),
    PRIMARY KEY (namespace_id, partition, chunk)
);
ALTER TABLE amends.audit_chunks ALTER COLUMN data SET STORAGE EXTERNAL;
