-- Until a new table has been analyzed the planner takes (namespace_id, partition) for a key and may read a whole partition
-- where an index would find one row. So empty tables get the statistics of made-up rows, which autovacuum replaces later.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM amends.journal) THEN
        INSERT INTO amends.journal (source_offset, broker_ms, key_id, revision, quantity, sequence, namespace_id, partition, day, outputs,
            state, kind, class, digest, txn_id, body)
        SELECT n, n, n / 5, 1, 1, n, 0, n % 2, DATE '2026-01-01' + n / 100, 1, 1, 1, 2, '\x00000000000000000000000000000000', int8send(n), '\x00'
        FROM generate_series(0, 9999) AS n;
        ANALYZE amends.journal;
        TRUNCATE amends.journal;
    END IF;
    IF NOT EXISTS (SELECT FROM amends.keys) THEN
        INSERT INTO amends.keys (key_id, namespace_id, partition, item, location)
        SELECT n, 0, n % 2, int8send(n / 10), int8send(n % 10) FROM generate_series(0, 9999) AS n;
        ANALYZE amends.keys;
        TRUNCATE amends.keys;
    END IF;
    IF NOT EXISTS (SELECT FROM amends.view_keys) THEN
        INSERT INTO amends.view_keys (key_id, namespace_id, partition, item, location)
        SELECT n, 0, n % 2, int8send(n / 10), int8send(n % 10) FROM generate_series(0, 9999) AS n;
        ANALYZE amends.view_keys;
        TRUNCATE amends.view_keys;
    END IF;
    IF NOT EXISTS (SELECT FROM amends.view_rows) THEN
        INSERT INTO amends.view_rows (key_id, version, sequence, cause_offset, cause_revision, digest, close, namespace_id, partition, day,
            repair_index, repair_count, kind, present, cause_txn_id)
        SELECT n / 20, 1, n, n, 1, n, n, 0, n % 2, DATE '2026-01-01' + n % 20, 0, 1, 1, true, int8send(n) FROM generate_series(0, 9999) AS n;
        ANALYZE amends.view_rows;
        TRUNCATE amends.view_rows;
    END IF;
    IF NOT EXISTS (SELECT FROM amends.receipts) THEN
        INSERT INTO amends.receipts (first_sequence, next_sequence, output_offset, source_offset, namespace_id, partition)
        SELECT n, n + 1, n, n, 0, n % 2 FROM generate_series(0, 9999) AS n;
        ANALYZE amends.receipts;
        TRUNCATE amends.receipts;
    END IF;
    IF NOT EXISTS (SELECT FROM amends.quarantine) THEN
        INSERT INTO amends.quarantine (source_offset, key_length, value_length, namespace_id, partition, rejection, key_sha256, value_sha256)
        SELECT n, 0, 0, 0, n % 2, 2, sha256(''), sha256('') FROM generate_series(0, 9999) AS n;
        ANALYZE amends.quarantine;
        TRUNCATE amends.quarantine;
    END IF;
END $$;
