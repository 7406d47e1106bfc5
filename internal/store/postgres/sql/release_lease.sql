UPDATE amends.leases SET holder = '', expires_at = '-infinity'
WHERE namespace_id = $1 AND partition = $2 AND role = $3 AND term = $4 AND holder = $5
