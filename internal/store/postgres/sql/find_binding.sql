SELECT topic, incarnation, partitions FROM amends.output_binding WHERE namespace_id = $1
