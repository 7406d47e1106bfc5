INSERT INTO peer.movements (key_id, txn_id, revision, day, delta, active)
SELECT * FROM unnest($1::integer[], $2::bytea[], $3::bigint[], $4::integer[], $5::bigint[], $6::boolean[])
ON CONFLICT (key_id, txn_id) DO UPDATE
SET revision = EXCLUDED.revision, day = EXCLUDED.day, delta = EXCLUDED.delta, active = EXCLUDED.active
WHERE peer.movements.revision < EXCLUDED.revision
