-- Replaces rows whose stored version is the one given; the caller compares how many were.
UPDATE amends.view_rows AS v
SET version = a.version, sequence = a.sequence, cause_offset = a.cause_offset, cause_revision = a.cause_revision, digest = a.digest,
    close = a.close, previous = a.previous, threshold = a.threshold, repair_index = a.repair_index, repair_count = a.repair_count,
    present = a.present, cause_txn_id = a.cause_txn_id, status = a.status, applied_at = statement_timestamp()
FROM unnest($3::bigint[], $4::date[], $5::smallint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
    $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::integer[], $16::integer[], $17::boolean[], $18::bytea[], $19::text[])
    AS a (key_id, day, kind, before, version, sequence, cause_offset, cause_revision, digest, close, previous, threshold, repair_index,
    repair_count, present, cause_txn_id, status)
WHERE v.namespace_id = $1 AND v.partition = $2 AND v.key_id = a.key_id AND v.day = a.day AND v.kind = a.kind AND v.version = a.before
