SELECT a.n, k.key_id, s.frontier, octet_length(s.state)::bigint
FROM unnest($3::bytea[], $4::bytea[]) WITH ORDINALITY AS a (item, location, n)
JOIN amends.keys AS k ON k.namespace_id = $1 AND k.item = a.item AND k.location = a.location AND k.partition = $2
LEFT JOIN amends.snapshots AS s ON s.namespace_id = $1 AND s.partition = $2 AND s.key_id = k.key_id
