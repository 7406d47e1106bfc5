UPDATE amends.relay_progress SET term = term + 1, nonce = $3 WHERE namespace_id = $1 AND partition = $2 RETURNING term
