-- The decisions of a key that changed outputs, the latest first.
SELECT source_offset, committed_at, revision, txn_id, outputs, body FROM amends.journal
WHERE namespace_id = $1 AND partition = $2 AND key_id = $3 AND source_offset <= $4 AND outputs > 0
ORDER BY source_offset DESC LIMIT $5
