SELECT epoch, nonce, frontier, next_sequence FROM amends.partitions WHERE namespace_id = $1 AND partition = $2 FOR UPDATE
