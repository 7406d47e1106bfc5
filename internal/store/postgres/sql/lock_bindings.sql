-- Bindings and new namespaces one after the other: what they exclude lies in other rows.
SELECT pg_advisory_xact_lock(hashtextextended('amends.bindings', 0))
