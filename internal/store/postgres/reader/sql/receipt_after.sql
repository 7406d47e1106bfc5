SELECT next_sequence, source_offset, acknowledged_at FROM amends.receipts
WHERE namespace_id = $1 AND partition = $2 AND next_sequence > $3 ORDER BY next_sequence LIMIT 1
