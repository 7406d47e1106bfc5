SELECT j.source_offset, j.broker_ms, j.key_id, j.revision, j.quantity, j.sequence, j.day, j.state, j.kind, j.class, j.rejection,
       j.digest, j.txn_id, j.body, k.item, k.location, j.committed_at, NULL::bytea
FROM (SELECT c.key_id, keys.item, keys.location
      FROM (SELECT DISTINCT key_id FROM amends.journal
            WHERE namespace_id = $1 AND partition = $2 AND source_offset >= $3 AND source_offset < $4 AND outputs > 0) AS c
      LEFT JOIN amends.keys ON keys.namespace_id = $1 AND keys.partition = $2 AND keys.key_id = c.key_id
      ORDER BY keys.item, keys.location) AS k
CROSS JOIN LATERAL (
    SELECT * FROM amends.journal
    WHERE namespace_id = $1 AND partition = $2 AND key_id = k.key_id AND source_offset < $4
    ORDER BY source_offset) AS j
