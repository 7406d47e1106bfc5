SELECT now(), created_at, source_topic FROM amends.namespaces WHERE namespace_id = $1
