SELECT chunk, data FROM amends.audit_chunks WHERE namespace_id = $1 AND partition = $2 ORDER BY chunk
