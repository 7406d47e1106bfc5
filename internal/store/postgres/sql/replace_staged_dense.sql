-- As replace_staged_rows, where the staged rows are a good part of the rows that their keys have on these days.
UPDATE amends.view_rows AS v
SET version = a.version, sequence = a.sequence, cause_offset = a.cause_offset, cause_revision = a.cause_revision, digest = a.digest,
    close = a.close, previous = a.previous, threshold = a.threshold, repair_index = a.repair_index, repair_count = a.repair_count,
    present = a.present, cause_txn_id = a.cause_txn_id, status = a.status, applied_at = statement_timestamp()
FROM pg_temp.view_stage AS a
WHERE v.namespace_id = $1 AND v.partition = $2 AND v.key_id = ANY ($3::bigint[]) AND v.day BETWEEN $4::date AND $5::date
  AND v.key_id = a.key_id AND v.day = a.day AND v.kind = a.kind AND v.version = a.before
