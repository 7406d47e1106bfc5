SELECT to_regclass('amends.schema_migrations') IS NOT NULL
