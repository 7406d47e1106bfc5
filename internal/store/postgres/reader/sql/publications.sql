SELECT a.n, r.output_offset + (a.sequence - r.first_sequence), r.acknowledged_at
FROM unnest($3::bigint[]) WITH ORDINALITY AS a (sequence, n)
CROSS JOIN LATERAL (
    SELECT first_sequence, next_sequence, output_offset, acknowledged_at FROM amends.receipts
    WHERE namespace_id = $1 AND partition = $2 AND first_sequence <= a.sequence
    ORDER BY first_sequence DESC LIMIT 1) AS r
WHERE r.next_sequence > a.sequence
ORDER BY a.n
