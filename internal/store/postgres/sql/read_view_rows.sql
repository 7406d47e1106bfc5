SELECT k.item, k.location, v.day, v.kind, v.version, v.sequence, v.cause_offset, v.cause_revision, v.digest, v.close, v.previous,
       v.threshold, v.repair_index, v.repair_count, v.present, v.cause_txn_id, v.status
FROM amends.view_rows AS v LEFT JOIN amends.view_keys AS k USING (namespace_id, partition, key_id)
WHERE v.namespace_id = $1 AND v.partition = $2
ORDER BY k.item, k.location, v.day, v.kind
