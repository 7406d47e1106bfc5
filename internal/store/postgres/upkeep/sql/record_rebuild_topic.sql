UPDATE amends.rebuilds AS r SET incarnation = $4, phase = 'bind'
FROM amends.namespaces AS n
WHERE n.namespace = $2 AND r.namespace_id = n.namespace_id AND r.origin_id = $1 AND r.phase = 'create' AND r.topic = $3
