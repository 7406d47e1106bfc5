-- Where to look for the decision that holds a sequence: where a receipt ends with it, else at the first receipt that ends
-- past it, else at the relay position.
SELECT coalesce(
    (SELECT CASE WHEN next_sequence - 1 = $3 THEN r.source_offset
                 WHEN first_sequence = 0 THEN 0
                 ELSE (SELECT p.source_offset FROM amends.receipts AS p
                       WHERE p.namespace_id = r.namespace_id AND p.partition = r.partition AND p.next_sequence = r.first_sequence) END
     FROM amends.receipts AS r WHERE namespace_id = $1 AND partition = $2 AND next_sequence > $3 ORDER BY next_sequence LIMIT 1),
    (SELECT source_offset FROM amends.relay_progress WHERE namespace_id = $1 AND partition = $2),
    0)
