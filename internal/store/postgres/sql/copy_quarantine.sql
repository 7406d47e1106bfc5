COPY amends.quarantine (source_offset, key_length, value_length, namespace_id, partition, rejection, key_sha256, value_sha256, key, value)
    FROM STDIN (FORMAT binary)
