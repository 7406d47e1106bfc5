UPDATE amends.leases SET holder = $4, term = $5, expires_at = clock_timestamp() + $6::bigint * interval '1 microsecond'
WHERE namespace_id = $1 AND partition = $2 AND role = $3
