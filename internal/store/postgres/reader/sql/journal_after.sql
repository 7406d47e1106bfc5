SELECT source_offset, committed_at FROM amends.journal
WHERE namespace_id = $1 AND partition = $2 AND source_offset >= $3 ORDER BY source_offset LIMIT 1
