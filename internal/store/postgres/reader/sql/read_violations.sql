SELECT partition, output_offset, reason, key, value FROM amends.protocol_errors WHERE namespace_id = $1 ORDER BY partition
