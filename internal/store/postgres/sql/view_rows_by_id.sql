SELECT a.n, v.version, v.sequence, v.cause_offset, v.cause_revision, v.digest, v.close, v.previous, v.threshold,
       v.repair_index, v.repair_count, v.present, v.cause_txn_id, v.status
FROM unnest($3::bigint[], $4::date[], $5::smallint[]) WITH ORDINALITY AS a (key_id, day, kind, n)
JOIN amends.view_rows AS v ON v.namespace_id = $1 AND v.partition = $2 AND v.key_id = a.key_id AND v.day = a.day AND v.kind = a.kind
