SELECT partition, count(*) FROM amends.view_rows
WHERE namespace_id = $1 AND kind = 3 AND status LIKE '{"status":"BLOCKED"%' GROUP BY partition ORDER BY partition
