SELECT j.source_offset, j.broker_ms, j.key_id, j.revision, j.quantity, j.sequence, j.day, j.state, j.kind, j.class, j.rejection,
       j.digest, j.txn_id, j.body, k.item, k.location
FROM amends.journal AS j
LEFT JOIN amends.keys AS k ON k.namespace_id = j.namespace_id AND k.partition = j.partition AND k.key_id = j.key_id
WHERE j.namespace_id = $1 AND j.partition = $2 AND j.source_offset > $3 AND j.source_offset <= $4 AND j.outputs > 0
ORDER BY j.source_offset
