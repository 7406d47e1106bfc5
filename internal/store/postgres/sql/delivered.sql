-- What shows that a namespace delivered without a binding (S9).
SELECT CASE
    WHEN EXISTS (SELECT FROM amends.receipts WHERE namespace_id = $1) THEN 'receipts'
    WHEN EXISTS (SELECT FROM amends.view_rows WHERE namespace_id = $1) THEN 'view rows'
    WHEN EXISTS (SELECT FROM amends.view_keys WHERE namespace_id = $1) THEN 'view keys'
    WHEN EXISTS (SELECT FROM amends.protocol_errors WHERE namespace_id = $1) THEN 'view errors'
    WHEN EXISTS (SELECT FROM amends.relay_progress WHERE namespace_id = $1
                 AND (next_sequence, output_offset, source_offset, term) <> (0, 0, 0, 0)) THEN 'a moved relay position'
    WHEN EXISTS (SELECT FROM amends.view_progress WHERE namespace_id = $1
                 AND ((next_sequence, output_offset, cause_offset, term) <> (0, 0, -1, 0) OR stopped)) THEN 'a moved view position'
    ELSE '' END
