SELECT first_sequence, next_sequence, output_offset FROM amends.receipts
WHERE namespace_id = $1 AND partition = $2 ORDER BY first_sequence
