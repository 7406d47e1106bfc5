-- Looks without a lock: who may not take a lease stands in nobody's way.
SELECT holder, expires_at > clock_timestamp() AS live FROM amends.leases
WHERE namespace_id = $1 AND partition = $2 AND role = $3
