-- The verified cut moves back by a full cycle only: of two audits, the one that is behind does not take it from the other.
INSERT INTO amends.audit_state AS a (namespace_id, partition, frontier, next_sequence, cause_offset, output_offset, differences, status, detail,
    verified_at, full_at, system_identifier, timeline)
VALUES ($1, $2, CASE WHEN $10::boolean THEN $3 ELSE 0 END, CASE WHEN $10 THEN $4 ELSE 0 END, CASE WHEN $10 THEN $5 ELSE -1 END,
    CASE WHEN $10 THEN $6 ELSE 0 END, $7, $8, $9, CASE WHEN $10 THEN clock_timestamp() END, CASE WHEN $11::boolean THEN clock_timestamp() END,
    CASE WHEN $10 THEN $12::bigint END, CASE WHEN $10 THEN $13::bigint END)
ON CONFLICT (namespace_id, partition) DO UPDATE SET
    frontier = CASE WHEN $10 AND ($11 OR $3 >= a.frontier) THEN $3 ELSE a.frontier END,
    next_sequence = CASE WHEN $10 AND ($11 OR $3 >= a.frontier) THEN $4 ELSE a.next_sequence END,
    cause_offset = CASE WHEN $10 AND ($11 OR $3 >= a.frontier) THEN $5 ELSE a.cause_offset END,
    output_offset = CASE WHEN $10 AND ($11 OR $3 >= a.frontier) THEN $6 ELSE a.output_offset END,
    system_identifier = CASE WHEN $10 AND ($11 OR $3 >= a.frontier) THEN $12 ELSE a.system_identifier END,
    timeline = CASE WHEN $10 AND ($11 OR $3 >= a.frontier) THEN $13 ELSE a.timeline END,
    differences = $7, status = $8, detail = $9, checked_at = clock_timestamp(),
    verified_at = CASE WHEN $10 AND ($11 OR $3 >= a.frontier) THEN clock_timestamp() ELSE a.verified_at END,
    full_at = CASE WHEN $11 THEN clock_timestamp() ELSE a.full_at END
