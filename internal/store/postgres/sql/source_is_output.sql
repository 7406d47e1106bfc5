SELECT n.namespace FROM amends.output_binding AS b JOIN amends.namespaces AS n USING (namespace_id) WHERE b.incarnation = $1
