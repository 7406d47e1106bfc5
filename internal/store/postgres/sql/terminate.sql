-- A silent client inside COPY is ended by no timeout: whoever waits for its row ends it. The same role only.
SELECT a.pid, pg_terminate_backend(a.pid)
FROM unnest(pg_blocking_pids($1)) AS b (pid) JOIN pg_stat_activity AS a ON a.pid = b.pid
WHERE a.usename = current_user AND a.datname = current_database()
