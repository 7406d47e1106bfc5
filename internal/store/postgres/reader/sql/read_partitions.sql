SELECT p.partition, p.epoch, p.nonce, p.frontier, p.next_sequence,
       p.last_records, p.last_accepted, p.last_rejected, p.last_rewind_days, p.last_refolded_days, p.last_changed, p.last_withdrawn,
       p.last_lock_ns, p.last_pre_commit_ns,
       p.total_records, p.total_accepted, p.total_rejected, p.total_rewind_days, p.total_refolded_days, p.total_changed, p.total_withdrawn,
       p.total_lock_ns, p.total_pre_commit_ns, p.commits, p.samples,
       r.term, r.nonce, r.next_sequence, r.output_offset, r.source_offset,
       v.term, v.nonce, v.output_offset, v.next_sequence, v.cause_offset, v.stopped
FROM amends.partitions AS p
LEFT JOIN amends.relay_progress AS r ON r.namespace_id = p.namespace_id AND r.partition = p.partition
LEFT JOIN amends.view_progress AS v ON v.namespace_id = p.namespace_id AND v.partition = p.partition
WHERE p.namespace_id = $1 ORDER BY p.partition
