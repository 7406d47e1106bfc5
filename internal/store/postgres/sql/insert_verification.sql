-- An audit's cycle that says what the newest row says, one of an audit too and younger than $12 seconds, adds none.
INSERT INTO amends.verifications (started_at, keys, outputs, differences, namespace_id, quiesced, deep, audit, status, boundary, detail)
SELECT $1::timestamptz, $2::bigint, $3::bigint, $4::bigint, $5::integer, $6::boolean, $7::boolean, $8::boolean, $9::text, $10::jsonb, $11::text
WHERE NOT $8 OR NOT EXISTS (
    SELECT FROM (
        SELECT n.audit, n.deep, n.differences, n.status, n.detail, n.finished_at FROM amends.verifications AS n
        WHERE n.namespace_id = $5 ORDER BY n.verification_id DESC LIMIT 1) AS last
    WHERE last.audit AND last.deep = $7 AND last.differences = $4 AND last.status = $9 AND last.detail = $11
        AND last.finished_at > clock_timestamp() - make_interval(secs => $12::double precision))
