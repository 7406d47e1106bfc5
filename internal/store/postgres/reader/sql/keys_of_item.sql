SELECT location FROM amends.keys WHERE namespace_id = $1 AND item = $2 ORDER BY location LIMIT $3
