-- The last commit's measurement, written by the same update as the frontier; NULL before the first, never invented zeros.
-- Times in nanoseconds.
ALTER TABLE amends.partitions
    ADD COLUMN last_records bigint,
    ADD COLUMN last_accepted bigint,
    ADD COLUMN last_rejected bigint,
    ADD COLUMN last_rewind_days bigint,
    ADD COLUMN last_refolded_days bigint,
    ADD COLUMN last_changed bigint,
    ADD COLUMN last_withdrawn bigint,
    ADD COLUMN last_lock_ns bigint,
    ADD COLUMN last_pre_commit_ns bigint,
    ADD CONSTRAINT partitions_last CHECK (
        num_nonnulls(last_records, last_accepted, last_rejected, last_rewind_days, last_refolded_days, last_changed, last_withdrawn,
            last_lock_ns, last_pre_commit_ns) IN (0, 9)
        AND least(last_records, last_accepted, last_rejected, last_rewind_days, last_refolded_days, last_changed, last_withdrawn,
            last_lock_ns, last_pre_commit_ns) >= 0);
