UPDATE amends.rebuilds AS r SET topic = $3
FROM amends.namespaces AS n
WHERE n.namespace = $2 AND r.namespace_id = n.namespace_id AND r.origin_id = $1 AND r.phase = 'create'
