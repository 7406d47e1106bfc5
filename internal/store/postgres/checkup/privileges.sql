SELECT c.relname::text, has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'), has_table_privilege(c.oid, 'UPDATE'),
       has_table_privilege(c.oid, 'DELETE')
FROM pg_class AS c WHERE c.relnamespace = to_regnamespace('amends') AND c.relkind = 'r' ORDER BY 1
