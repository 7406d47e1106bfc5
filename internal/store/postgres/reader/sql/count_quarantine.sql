SELECT count(*) FROM amends.quarantine WHERE namespace_id = $1 AND partition = $2
