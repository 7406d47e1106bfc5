-- Whether a decision at or past an offset may be under way: none is recorded there, and a transaction holds the partition's row that
-- had not ended when this snapshot was taken. What it records bears the time at which it wrote, which is before it is seen.
-- A row knows the low half of a transaction's number: the whole one is that next to the snapshot's end.
SELECT EXISTS (
    SELECT FROM amends.partitions AS p, CAST(pg_snapshot_xmax(pg_current_snapshot())::text AS bigint) AS ended
    WHERE p.namespace_id = $1 AND p.partition = $2 AND p.xmax <> '0'
      AND NOT pg_visible_in_snapshot((ended + ((p.xmax::text::bigint - ended + 2147483648) & 4294967295) - 2147483648)::text::xid8, pg_current_snapshot())
      AND NOT EXISTS (SELECT FROM amends.journal AS j WHERE j.namespace_id = $1 AND j.partition = $2 AND j.source_offset >= $3))
