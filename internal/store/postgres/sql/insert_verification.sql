INSERT INTO amends.verifications (started_at, keys, outputs, differences, namespace_id, quiesced, deep, audit, status, boundary, detail)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
