SELECT count(*) FROM amends.journal WHERE namespace_id = $1 AND (class = 3 OR class = 5)
