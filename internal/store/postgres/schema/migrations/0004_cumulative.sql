-- Cumulative counts and times, which saturate at 2^63-1, and the latest 32 samples, nine numbers each, oldest first, in
-- the order of the last_ columns. total_rewind_days is the largest of all.
CREATE FUNCTION amends.saturated(a bigint, b bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN a > 9223372036854775807 - b THEN 9223372036854775807 ELSE a + b END;

ALTER TABLE amends.partitions
    ADD COLUMN commits bigint NOT NULL DEFAULT 0,
    ADD COLUMN total_records bigint NOT NULL DEFAULT 0,
    ADD COLUMN total_accepted bigint NOT NULL DEFAULT 0,
    ADD COLUMN total_rejected bigint NOT NULL DEFAULT 0,
    ADD COLUMN total_rewind_days bigint NOT NULL DEFAULT 0,
    ADD COLUMN total_refolded_days bigint NOT NULL DEFAULT 0,
    ADD COLUMN total_changed bigint NOT NULL DEFAULT 0,
    ADD COLUMN total_withdrawn bigint NOT NULL DEFAULT 0,
    ADD COLUMN total_lock_ns bigint NOT NULL DEFAULT 0,
    ADD COLUMN total_pre_commit_ns bigint NOT NULL DEFAULT 0,
    ADD COLUMN samples bigint[] NOT NULL DEFAULT '{}',
    ADD CONSTRAINT partitions_totals CHECK (least(commits, total_records, total_accepted, total_rejected, total_rewind_days,
        total_refolded_days, total_changed, total_withdrawn, total_lock_ns, total_pre_commit_ns) >= 0),
    ADD CONSTRAINT partitions_samples CHECK (cardinality(samples) <= 288 AND cardinality(samples) % 9 = 0);

-- In the row, neither compressed nor moved out of it: it is rewritten by every commit.
ALTER TABLE amends.partitions ALTER COLUMN samples SET STORAGE PLAIN;
