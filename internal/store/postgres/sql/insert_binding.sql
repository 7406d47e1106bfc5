INSERT INTO amends.output_binding (namespace_id, partitions, topic, incarnation) VALUES ($1, $2, $3, $4)
