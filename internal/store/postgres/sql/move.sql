-- A move over control records and gaps (S13) leaves measurements alone.
UPDATE amends.partitions SET frontier = $6
WHERE namespace_id = $1 AND partition = $2 AND epoch = $3 AND nonce = $4 AND frontier = $5
