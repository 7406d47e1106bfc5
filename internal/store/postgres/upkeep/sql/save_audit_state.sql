UPDATE amends.audit_state SET state_frontier = $3, state_format = $4, state_chunks = $5, state_checksum = $6
WHERE namespace_id = $1 AND partition = $2
