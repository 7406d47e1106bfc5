SELECT s.key_id, s.frontier, s.state
FROM unnest($3::bigint[]) AS a (key_id)
JOIN amends.snapshots AS s ON s.namespace_id = $1 AND s.partition = $2 AND s.key_id = a.key_id
