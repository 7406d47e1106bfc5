SELECT a.n, k.key_id
FROM unnest($2::bytea[], $3::bytea[]) WITH ORDINALITY AS a (item, location, n)
JOIN amends.view_keys AS k ON k.namespace_id = $1 AND k.item = a.item AND k.location = a.location
WHERE k.partition = $4
