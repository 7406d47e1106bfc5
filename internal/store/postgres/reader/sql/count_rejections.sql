SELECT rejection, count(*) FROM amends.quarantine WHERE namespace_id = $1 GROUP BY rejection ORDER BY rejection
