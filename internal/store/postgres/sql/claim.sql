UPDATE amends.partitions SET epoch = epoch + 1, nonce = $3 WHERE namespace_id = $1 AND partition = $2
