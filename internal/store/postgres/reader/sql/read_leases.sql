SELECT partition, role, holder, term, expires_at > clock_timestamp() AS live FROM amends.leases WHERE namespace_id = $1 ORDER BY partition, role
