SELECT q.partition, q.source_offset, q.rejection, q.key_length, q.value_length, q.key_sha256, q.value_sha256, q.key, q.value,
       j.committed_at, j.broker_ms
FROM (SELECT * FROM amends.quarantine WHERE namespace_id = $1 AND (partition, source_offset) > ($2::integer, $3::bigint)
      ORDER BY partition, source_offset LIMIT $4) AS q
LEFT JOIN amends.journal AS j USING (namespace_id, partition, source_offset)
ORDER BY q.partition, q.source_offset
