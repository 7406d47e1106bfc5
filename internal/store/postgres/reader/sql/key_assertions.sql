-- What was recorded of some transactions of a key: one scan of the key's rows.
SELECT source_offset, committed_at, broker_ms, revision, coalesce(quantity, 0), day, state, coalesce(kind, 0), class, txn_id FROM amends.journal
WHERE namespace_id = $1 AND partition = $2 AND key_id = $3 AND txn_id = ANY ($4::bytea[]) ORDER BY source_offset
