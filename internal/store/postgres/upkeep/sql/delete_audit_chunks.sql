DELETE FROM amends.audit_chunks WHERE namespace_id = $1 AND partition = $2
