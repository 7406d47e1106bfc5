SELECT k.item, k.location, v.day, v.kind, v.version, v.sequence, v.cause_offset, v.cause_revision, v.digest, v.close, v.previous,
       v.threshold, v.repair_index, v.repair_count, v.present, v.cause_txn_id, v.status
FROM amends.view_keys AS k JOIN amends.view_rows AS v USING (namespace_id, partition, key_id)
WHERE k.namespace_id = $1 AND k.partition = $2
ORDER BY k.item, k.location, v.day, v.kind
