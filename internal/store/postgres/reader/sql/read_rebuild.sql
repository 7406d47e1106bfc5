SELECT r.namespace_id IS NOT NULL, coalesce(o.namespace, ''), coalesce(r.topic, ''), coalesce(r.incarnation, ''), coalesce(r.phase, ''),
       coalesce(r.status, ''), r.started_at, r.finished_at
FROM amends.namespaces AS n
LEFT JOIN amends.rebuilds AS r ON r.namespace_id = n.namespace_id
LEFT JOIN amends.namespaces AS o ON o.namespace_id = r.origin_id
WHERE n.namespace = $1
