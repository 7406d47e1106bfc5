SELECT slot_name::text, active, coalesce(wal_status, ''),
       CASE WHEN pg_is_in_recovery() OR restart_lsn IS NULL THEN 0 ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint END
FROM pg_replication_slots ORDER BY 1
