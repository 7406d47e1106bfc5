SELECT a.n, k.partition, k.key_id
FROM unnest($2::bytea[], $3::bytea[]) WITH ORDINALITY AS a (item, location, n)
JOIN amends.keys AS k ON k.namespace_id = $1 AND k.item = a.item AND k.location = a.location
ORDER BY a.n
