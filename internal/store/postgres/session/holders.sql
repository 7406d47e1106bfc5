-- Who blocks a backend, for people.
SELECT coalesce(string_agg(format('process %s of %s (application %s, %s since %s)', a.pid, a.usename, a.application_name,
       coalesce(a.state, 'state hidden'), coalesce(to_char(a.state_change AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'unknown')), ', ' ORDER BY a.pid), '')
FROM unnest(pg_blocking_pids($1)) AS b (pid) JOIN pg_stat_activity AS a ON a.pid = b.pid
