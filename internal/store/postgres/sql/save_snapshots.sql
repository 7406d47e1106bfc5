INSERT INTO amends.snapshots (key_id, frontier, rows, namespace_id, partition, state)
SELECT a.key_id, a.frontier, a.rows, $1, $2, a.state
FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[]) AS a (key_id, frontier, rows, state)
JOIN amends.keys AS k ON k.namespace_id = $1 AND k.partition = $2 AND k.key_id = a.key_id
ON CONFLICT (namespace_id, partition, key_id) DO UPDATE SET frontier = excluded.frontier, rows = excluded.rows, state = excluded.state
