-- A page of blocked keys in the order of their index, with the worker's own id of each and when the status was decided.
SELECT v.partition, v.key_id, k.item, k.location, v.version, v.sequence, v.cause_offset, v.cause_revision, v.cause_txn_id, v.status,
       w.key_id AS decided_key_id, j.committed_at
FROM (SELECT * FROM amends.view_rows
      WHERE namespace_id = $1 AND kind = 3 AND status LIKE '{"status":"BLOCKED"%' AND (partition, key_id) > ($2::integer, $3::bigint)
      ORDER BY partition, key_id LIMIT $4) AS v
JOIN amends.view_keys AS k USING (namespace_id, partition, key_id)
LEFT JOIN amends.keys AS w ON w.namespace_id = v.namespace_id AND w.item = k.item AND w.location = k.location
LEFT JOIN amends.journal AS j ON j.namespace_id = v.namespace_id AND j.partition = v.partition AND j.source_offset = v.cause_offset
ORDER BY v.partition, v.key_id
