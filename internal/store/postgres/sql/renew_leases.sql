-- In the order of the key, so that two processes never wait for each other.
WITH mine AS (
    SELECT l.partition, l.role, l.term
    FROM unnest($3::integer[], $4::text[], $5::bigint[]) AS a (partition, role, term)
    JOIN amends.leases AS l ON l.namespace_id = $1 AND l.partition = a.partition AND l.role = a.role AND l.term = a.term AND l.holder = $2
    ORDER BY l.partition, l.role FOR UPDATE OF l)
UPDATE amends.leases AS l SET expires_at = clock_timestamp() + $6::bigint * interval '1 microsecond'
FROM mine WHERE l.namespace_id = $1 AND l.partition = mine.partition AND l.role = mine.role
RETURNING l.partition, l.role
