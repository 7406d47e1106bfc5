-- Where the partition stands, in one row at least, and one window of its outbox. While nothing is pending no journal row is
-- read. Nested loops keep the order of the journal.
SELECT j.source_offset, j.broker_ms, j.key_id, j.revision, j.quantity, j.sequence, j.day, j.state, j.kind, j.class, j.rejection,
       j.digest, j.txn_id, j.body, j.item, j.location, e.frontier, e.next_sequence
FROM (SELECT frontier, next_sequence FROM amends.partitions WHERE namespace_id = $1 AND partition = $2) AS e
LEFT JOIN LATERAL (
    SELECT w.*, k.item, k.location
    FROM (SELECT * FROM amends.journal
          WHERE namespace_id = $1 AND partition = $2 AND source_offset >= $3 AND source_offset < $5 AND e.next_sequence > $4
            AND outputs > 0 AND sequence + outputs > $4
          ORDER BY source_offset LIMIT 512) AS w
    JOIN amends.keys AS k USING (namespace_id, partition, key_id)
    ORDER BY w.source_offset) AS j ON true
