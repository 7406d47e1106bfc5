UPDATE amends.view_progress SET output_offset = $3, next_sequence = $4, cause_offset = $5, stopped = $6
WHERE namespace_id = $1 AND partition = $2
