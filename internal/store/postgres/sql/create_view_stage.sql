-- Where a large page's rows wait for replace_staged_rows: the connection's own, not logged, empty after every transaction.
CREATE TEMPORARY TABLE IF NOT EXISTS view_stage (
    before bigint NOT NULL, key_id bigint NOT NULL, version bigint NOT NULL, sequence bigint NOT NULL, cause_offset bigint NOT NULL,
    cause_revision bigint NOT NULL, digest bigint NOT NULL, close bigint, previous bigint, threshold bigint, namespace_id integer NOT NULL,
    partition integer NOT NULL, day date NOT NULL, repair_index integer NOT NULL, repair_count integer NOT NULL, kind smallint NOT NULL,
    present boolean NOT NULL, cause_txn_id bytea NOT NULL, status text COLLATE "C"
) ON COMMIT DELETE ROWS
