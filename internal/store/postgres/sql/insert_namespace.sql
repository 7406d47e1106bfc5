INSERT INTO amends.namespaces (partitions, storage_format, quantity_scale, namespace, source_topic, source_incarnation, digest, config)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (namespace) DO NOTHING
RETURNING namespace_id
