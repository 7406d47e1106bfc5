-- A page of the records that were classified as conflicts, in the order of their index.
SELECT c.partition, c.key_id, c.source_offset, c.revision, c.txn_id, k.item, k.location
FROM (SELECT * FROM amends.journal
      WHERE namespace_id = $1 AND (class = 3 OR class = 5) AND (partition, key_id, source_offset) > ($2::integer, $3::bigint, $4::bigint)
      ORDER BY partition, key_id, source_offset LIMIT $5) AS c
JOIN amends.keys AS k USING (namespace_id, partition, key_id)
ORDER BY c.partition, c.key_id, c.source_offset
