SELECT coalesce(state, ''), xact_start IS NOT NULL, backend_xid IS NOT NULL FROM pg_stat_activity WHERE pid = $1
