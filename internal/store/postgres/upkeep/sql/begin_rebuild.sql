WITH made AS (
    INSERT INTO amends.namespaces (partitions, storage_format, quantity_scale, namespace, source_topic, source_incarnation, digest, config)
    SELECT partitions, storage_format, quantity_scale, $2, source_topic, source_incarnation, $3, $4
    FROM amends.namespaces WHERE namespace_id = $1
    ON CONFLICT (namespace) DO NOTHING
    RETURNING namespace_id, partitions
), numbered AS (
    INSERT INTO amends.partitions (namespace_id, partition)
    SELECT namespace_id, n FROM made CROSS JOIN LATERAL generate_series(0, partitions - 1) AS n
)
INSERT INTO amends.rebuilds (namespace_id, origin_id, topic) SELECT namespace_id, $1, $5 FROM made
