-- From the catalog's rows and not by to_regclass: that asks a cache, which may still say no after waiting for another
-- process that has just made the ledger (an advisory lock does not refresh it, reading a table does).
SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'amends' AND c.relname = 'schema_migrations')
