SELECT partition, frontier, next_sequence, cause_offset, output_offset, differences, checked_at, verified_at, full_at, status, detail,
       state_frontier, state_format, state_chunks, state_checksum, system_identifier, timeline
FROM amends.audit_state WHERE namespace_id = $1 ORDER BY partition
