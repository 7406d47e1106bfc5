SELECT n.namespace, 'source' AS use FROM amends.namespaces AS n WHERE n.source_incarnation = $1 OR n.namespace_id = $3 AND n.source_topic = $2
UNION ALL
SELECT n.namespace, 'output' FROM amends.output_binding AS b JOIN amends.namespaces AS n USING (namespace_id) WHERE b.incarnation = $1
LIMIT 1
