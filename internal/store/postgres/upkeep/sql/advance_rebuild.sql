UPDATE amends.rebuilds AS r SET phase = $4, status = $5, finished_at = CASE WHEN $4 = 'done' THEN clock_timestamp() END
FROM amends.namespaces AS n
WHERE n.namespace = $2 AND r.namespace_id = n.namespace_id AND r.origin_id = $1 AND r.phase = $3
