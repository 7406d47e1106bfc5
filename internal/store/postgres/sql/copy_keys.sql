COPY amends.keys (key_id, namespace_id, partition, item, location) FROM STDIN (FORMAT binary)
