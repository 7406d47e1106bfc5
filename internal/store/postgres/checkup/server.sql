SELECT current_setting('server_version_num')::integer, current_setting('server_version'), current_setting('server_encoding'),
       pg_is_in_recovery(), pg_backend_pid(), current_user::text, current_database()::text, pg_database_size(current_database()),
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       to_regnamespace('amends') IS NOT NULL,
       has_database_privilege(current_database(), 'TEMP'),
       CASE WHEN to_regnamespace('amends') IS NULL THEN has_database_privilege(current_database(), 'CREATE')
            ELSE has_schema_privilege(to_regnamespace('amends')::oid, 'USAGE') END,
       (SELECT count(*) FROM pg_stat_replication)
