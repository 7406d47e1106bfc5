-- What each partition has waited for longest: when the first output without a receipt was decided, and when the first
-- published output that the view lacks was acknowledged. Where nothing waits no journal row and no receipt is read.
SELECT p.partition,
    (SELECT j.committed_at FROM amends.journal AS j
     WHERE j.namespace_id = p.namespace_id AND j.partition = p.partition AND j.source_offset >= coalesce(r.source_offset, 0)
       AND p.next_sequence > coalesce(r.next_sequence, 0) AND j.outputs > 0 AND j.sequence + j.outputs > coalesce(r.next_sequence, 0)
     ORDER BY j.source_offset LIMIT 1) AS undelivered,
    (SELECT c.acknowledged_at FROM amends.receipts AS c
     WHERE c.namespace_id = p.namespace_id AND c.partition = p.partition AND v.next_sequence < r.next_sequence AND c.next_sequence > v.next_sequence
     ORDER BY c.next_sequence LIMIT 1) AS unapplied
FROM amends.partitions AS p
LEFT JOIN amends.relay_progress AS r ON r.namespace_id = p.namespace_id AND r.partition = p.partition
LEFT JOIN amends.view_progress AS v ON v.namespace_id = p.namespace_id AND v.partition = p.partition
WHERE p.namespace_id = $1 ORDER BY p.partition
