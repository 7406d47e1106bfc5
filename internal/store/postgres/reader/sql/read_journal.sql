SELECT j.source_offset, j.broker_ms, j.key_id, j.revision, j.quantity, j.sequence, j.day, j.state, j.kind, j.class, j.rejection,
       j.digest, j.txn_id, j.body, k.item, k.location,
       q.source_offset, q.key_length, q.value_length, q.key_sha256, q.value_sha256, q.key, q.value, q.rejection, j.outputs
FROM amends.journal AS j
LEFT JOIN amends.keys AS k ON k.namespace_id = j.namespace_id AND k.partition = j.partition AND k.key_id = j.key_id
LEFT JOIN amends.quarantine AS q ON j.rejection IS NOT NULL
    AND q.namespace_id = j.namespace_id AND q.partition = j.partition AND q.source_offset = j.source_offset
WHERE j.namespace_id = $1 AND j.partition = $2 ORDER BY j.source_offset
