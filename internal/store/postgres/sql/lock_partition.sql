-- Lock, fence and cache validity in one. Where the row is not as expected, the division by zero makes the server skip
-- the rest of the pipeline, so that a fenced worker writes nothing and holds nothing. The wait goes to the update.
SELECT 1 / count(*),
       set_config('amends.lock_ns', greatest(0, (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000000)::bigint)::text, true)
FROM (SELECT 1 FROM amends.partitions
      WHERE namespace_id = $1 AND partition = $2 AND epoch = $3 AND nonce = $4 AND frontier = $5 AND next_sequence = $6
      FOR UPDATE) AS locked
