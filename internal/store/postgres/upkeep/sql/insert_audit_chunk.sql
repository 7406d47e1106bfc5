INSERT INTO amends.audit_chunks (namespace_id, partition, chunk, data) VALUES ($1, $2, $3, $4)
