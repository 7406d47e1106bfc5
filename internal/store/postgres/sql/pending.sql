SELECT j.source_offset, j.broker_ms, j.key_id, j.revision, j.quantity, j.sequence, j.day, j.state, j.kind, j.class, j.rejection,
       j.digest, j.txn_id, j.body, k.item, k.location
FROM (SELECT * FROM amends.journal
      WHERE namespace_id = $1 AND partition = $2 AND source_offset >= $3 AND outputs > 0 AND sequence + outputs > $4
      ORDER BY source_offset LIMIT 512) AS j
JOIN amends.keys AS k USING (namespace_id, partition, key_id)
ORDER BY j.source_offset
