COPY amends.journal (source_offset, broker_ms, key_id, revision, quantity, sequence, namespace_id, partition, day, outputs,
    state, kind, class, rejection, digest, txn_id, body) FROM STDIN (FORMAT binary)
