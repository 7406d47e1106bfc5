-- The transactions of a key that ever stated a count of a day.
SELECT DISTINCT txn_id FROM amends.journal
WHERE namespace_id = $1 AND partition = $2 AND key_id = $3 AND day = $4 AND kind >= 3 ORDER BY txn_id
