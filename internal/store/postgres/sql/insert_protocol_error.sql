INSERT INTO amends.protocol_errors (output_offset, namespace_id, partition, reason, key, value) VALUES ($1, $2, $3, $4, $5, $6)
