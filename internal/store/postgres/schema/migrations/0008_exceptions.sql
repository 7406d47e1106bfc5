-- What an operator looks for is rare among very many rows: blocked keys and conflicts. Both indexes hold nothing but those
-- rows. Any other row pays for the look at the condition alone, and an update of a balance stays within its page, since the
-- columns of the condition do not change.
CREATE INDEX view_rows_blocked ON amends.view_rows (namespace_id, partition, key_id)
    WHERE kind = 3 AND status LIKE '{"status":"BLOCKED"%';

CREATE INDEX journal_conflicts ON amends.journal (namespace_id, partition, key_id, source_offset)
    WHERE class = 3 OR class = 5;
