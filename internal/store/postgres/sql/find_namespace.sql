SELECT namespace_id, storage_format, source_topic, digest, config FROM amends.namespaces WHERE namespace = $1
