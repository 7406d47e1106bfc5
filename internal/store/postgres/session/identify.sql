-- Which server history, and whether it may be written to. Once a connection.
SELECT pg_is_in_recovery() AS standby,
       CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_walfile_name(pg_current_wal_insert_lsn()) END AS segment,
       (SELECT system_identifier FROM pg_control_system()) AS system,
       pg_backend_pid() AS pid,
       current_setting('fsync') AS fsync,
       current_setting('server_version_num')::integer AS version,
       current_setting('server_encoding') AS encoding
