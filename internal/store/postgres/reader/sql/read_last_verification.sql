SELECT started_at, finished_at, keys, outputs, differences, quiesced, deep, audit, status, boundary, detail
FROM amends.verifications WHERE namespace_id = $1 ORDER BY verification_id DESC LIMIT 1
