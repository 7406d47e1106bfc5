SELECT partition, frontier FROM amends.partitions WHERE namespace_id = $1 ORDER BY partition
