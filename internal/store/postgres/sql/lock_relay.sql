SELECT term, nonce, next_sequence, output_offset, source_offset FROM amends.relay_progress
WHERE namespace_id = $1 AND partition = $2 FOR UPDATE
