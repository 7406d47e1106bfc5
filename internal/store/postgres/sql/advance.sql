UPDATE amends.partitions
SET frontier = $6, next_sequence = $7,
    last_records = $8, last_accepted = $9, last_rejected = $10, last_rewind_days = $11, last_refolded_days = $12,
    last_changed = $13, last_withdrawn = $14, last_lock_ns = m.lock_ns, last_pre_commit_ns = m.pre_commit_ns,
    commits = amends.saturated(commits, 1),
    total_records = amends.saturated(total_records, $8),
    total_accepted = amends.saturated(total_accepted, $9),
    total_rejected = amends.saturated(total_rejected, $10),
    total_rewind_days = greatest(total_rewind_days, $11),
    total_refolded_days = amends.saturated(total_refolded_days, $12),
    total_changed = amends.saturated(total_changed, $13),
    total_withdrawn = amends.saturated(total_withdrawn, $14),
    total_lock_ns = amends.saturated(total_lock_ns, m.lock_ns),
    total_pre_commit_ns = amends.saturated(total_pre_commit_ns, m.pre_commit_ns),
    samples = samples[greatest(1, cardinality(samples) + 10 - 288):]
        || ARRAY[$8::bigint, $9, $10, $11, $12, $13, $14, m.lock_ns, m.pre_commit_ns]
FROM (SELECT current_setting('amends.lock_ns')::bigint AS lock_ns,
             greatest(0, (extract(epoch FROM clock_timestamp() - transaction_timestamp()) * 1000000000)::bigint) AS pre_commit_ns) AS m
WHERE namespace_id = $1 AND partition = $2 AND epoch = $3 AND nonce = $4 AND frontier = $5
