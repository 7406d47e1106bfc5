SELECT version, name, checksum FROM amends.schema_migrations ORDER BY version
