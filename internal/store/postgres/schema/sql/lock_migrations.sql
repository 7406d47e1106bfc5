-- One process at a time; others wait as long as a migration may take.
SET LOCAL lock_timeout = '5min'; SET LOCAL statement_timeout = '5min';
SELECT pg_advisory_xact_lock(hashtextextended('amends.migrations', 0))
