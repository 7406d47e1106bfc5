SELECT k.item, k.location, v.day, v.kind, v.version, v.sequence, v.cause_offset, v.cause_revision, v.digest, v.close, v.previous,
       v.threshold, v.repair_index, v.repair_count, v.present, v.cause_txn_id, v.status
FROM unnest($3::bytea[], $4::bytea[], $5::date[], $6::smallint[]) AS a (item, location, day, kind)
JOIN amends.view_keys AS k ON k.namespace_id = $1 AND k.item = a.item AND k.location = a.location
JOIN amends.view_rows AS v ON v.namespace_id = $1 AND v.partition = $2 AND v.key_id = k.key_id AND v.day = a.day AND v.kind = a.kind
WHERE k.partition = $2
