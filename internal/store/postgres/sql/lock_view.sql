SELECT term, nonce, output_offset, next_sequence, cause_offset, stopped FROM amends.view_progress
WHERE namespace_id = $1 AND partition = $2 FOR UPDATE
