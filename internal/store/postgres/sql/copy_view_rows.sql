COPY amends.view_rows (key_id, version, sequence, cause_offset, cause_revision, digest, close, previous, threshold, namespace_id,
    partition, day, repair_index, repair_count, kind, present, cause_txn_id, status) FROM STDIN (FORMAT binary)
