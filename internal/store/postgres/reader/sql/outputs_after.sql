SELECT j.source_offset, j.broker_ms, j.key_id, j.revision, j.quantity, j.sequence, j.day, j.state, j.kind, j.class, j.rejection,
       j.digest, j.txn_id, j.body, k.item, k.location, j.committed_at, r.packed
FROM amends.journal AS j
LEFT JOIN amends.keys AS k ON k.namespace_id = $1 AND k.partition = $2 AND k.key_id = j.key_id
LEFT JOIN LATERAL (
    SELECT string_agg(int8send(first_sequence) || int8send(next_sequence) || int8send(output_offset) || timestamptz_send(acknowledged_at), ''::bytea
                      ORDER BY first_sequence) AS packed
    FROM amends.receipts
    WHERE namespace_id = $1 AND partition = $2 AND first_sequence < j.sequence + j.outputs AND first_sequence >= coalesce((
        SELECT first_sequence FROM amends.receipts
        WHERE namespace_id = $1 AND partition = $2 AND first_sequence <= j.sequence ORDER BY first_sequence DESC LIMIT 1), j.sequence)) AS r ON true
WHERE j.namespace_id = $1 AND j.partition = $2 AND j.source_offset >= $3 AND j.source_offset < $4 AND j.outputs > 0
ORDER BY j.source_offset LIMIT $5
