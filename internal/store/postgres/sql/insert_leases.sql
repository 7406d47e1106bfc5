INSERT INTO amends.leases (namespace_id, partition, role)
SELECT $1, n, r FROM generate_series(0, $2::integer - 1) AS n, unnest(ARRAY['relay', 'view']) AS r ON CONFLICT DO NOTHING
