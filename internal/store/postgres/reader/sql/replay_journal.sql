SELECT source_offset, digest FROM amends.journal WHERE namespace_id = $1 AND partition = $2 ORDER BY source_offset
