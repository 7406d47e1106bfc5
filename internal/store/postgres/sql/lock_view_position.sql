-- As lock_partition: a page under another term, nonce or position skips the rest of the pipeline.
SELECT 1 / count(*) FROM (
    SELECT 1 FROM amends.view_progress
    WHERE namespace_id = $1 AND partition = $2 AND term = $3 AND nonce = $4
      AND output_offset = $5 AND next_sequence = $6 AND cause_offset = $7 AND NOT stopped
    FOR UPDATE) AS locked
