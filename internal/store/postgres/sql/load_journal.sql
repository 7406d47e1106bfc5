SELECT j.source_offset, j.broker_ms, j.key_id, j.revision, j.quantity, j.sequence, j.day, j.state, j.kind, j.class, j.rejection,
       j.digest, j.txn_id, j.body
FROM unnest($3::bigint[], $4::bigint[]) AS a (key_id, frontier)
CROSS JOIN LATERAL (
    SELECT * FROM amends.journal
    WHERE namespace_id = $1 AND partition = $2 AND key_id = a.key_id AND source_offset >= a.frontier
    ORDER BY source_offset LIMIT $5) AS j
LIMIT $5
