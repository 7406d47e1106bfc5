-- $8 is a source offset below which the last sequence is known not to lie.
-- Moves the position and stores the receipt in one, or does neither: term, nonce, position, and an outbox that reaches so far.
WITH held AS (
    SELECT source_offset FROM amends.journal
    WHERE namespace_id = $1 AND partition = $2
      AND source_offset >= greatest($8, (SELECT source_offset FROM amends.relay_progress WHERE namespace_id = $1 AND partition = $2))
      AND outputs > 0 AND sequence + outputs >= $6 AND sequence < $6
    ORDER BY source_offset LIMIT 1),
moved AS (
    UPDATE amends.relay_progress AS r SET next_sequence = $6, output_offset = $7::bigint + ($6 - $5::bigint), source_offset = held.source_offset
    FROM held
    WHERE r.namespace_id = $1 AND r.partition = $2 AND r.term = $3 AND r.nonce = $4 AND r.next_sequence = $5 AND r.output_offset <= $7
    RETURNING r.source_offset)
INSERT INTO amends.receipts (first_sequence, next_sequence, output_offset, source_offset, namespace_id, partition)
SELECT $5, $6, $7, moved.source_offset, $1, $2 FROM moved
