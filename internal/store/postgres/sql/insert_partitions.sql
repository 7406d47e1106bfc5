INSERT INTO amends.partitions (namespace_id, partition) SELECT $1, n FROM generate_series(0, $2::integer - 1) AS n
