-- Read-only views for people and checkers. Identifiers come as text where text can hold them (no U+0000), else NULL, and
-- always as bytes.

CREATE FUNCTION amends.readable(identifier bytea) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN position('\x00'::bytea IN identifier) = 0 THEN convert_from(identifier, 'UTF8') END;

CREATE FUNCTION amends.scaled(units bigint, scale integer) RETURNS numeric
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN round(units::numeric * power(10::numeric, -scale), scale);

-- When an output version was published: the database's time of the receipt that covers its sequence. NULL until there is one.
CREATE FUNCTION amends.published_at(of_namespace integer, of_partition integer, of_sequence bigint) RETURNS timestamptz
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN (SELECT CASE WHEN r.next_sequence > of_sequence THEN r.acknowledged_at END FROM amends.receipts AS r
            WHERE r.namespace_id = of_namespace AND r.partition = of_partition AND r.first_sequence <= of_sequence
            ORDER BY r.first_sequence DESC LIMIT 1);

-- What the view holds, one row an output, withdrawn ones included (present false). trusted is false while the key is
-- BLOCKED or its status is not known. Numbers are units of 10^-quantity_scale; scaled_close is the quantity itself.
CREATE VIEW amends.balances AS
SELECT n.namespace, amends.readable(k.item) AS item, amends.readable(k.location) AS location, v.day, v.present, v.close,
       amends.scaled(v.close, n.quantity_scale) AS scaled_close,
       coalesce(s.present AND s.status LIKE '{"status":"READY"%', false) AS trusted,
       v.version, v.sequence, v.partition, v.cause_offset, amends.readable(v.cause_txn_id) AS cause_txn_id, v.cause_revision, v.repair_index,
       v.repair_count, amends.published_at(v.namespace_id, v.partition, v.sequence) AS published_at, v.applied_at, k.item AS item_bytes, k.location AS location_bytes, v.cause_txn_id AS cause_txn_id_bytes
FROM amends.view_rows AS v
JOIN amends.namespaces AS n USING (namespace_id)
JOIN amends.view_keys AS k USING (namespace_id, partition, key_id)
LEFT JOIN amends.view_rows AS s ON s.namespace_id = v.namespace_id AND s.partition = v.partition AND s.key_id = v.key_id
    AND s.day = 'infinity' AND s.kind = 3
WHERE v.kind = 1;

CREATE VIEW amends.alerts AS
SELECT n.namespace, amends.readable(k.item) AS item, amends.readable(k.location) AS location, v.day, v.present, v.previous, v.close, v.threshold,
       amends.scaled(v.close, n.quantity_scale) AS scaled_close,
       coalesce(s.present AND s.status LIKE '{"status":"READY"%', false) AS trusted,
       v.version, v.sequence, v.partition, v.cause_offset, amends.readable(v.cause_txn_id) AS cause_txn_id, v.cause_revision, v.repair_index,
       v.repair_count, amends.published_at(v.namespace_id, v.partition, v.sequence) AS published_at, v.applied_at, k.item AS item_bytes, k.location AS location_bytes, v.cause_txn_id AS cause_txn_id_bytes
FROM amends.view_rows AS v
JOIN amends.namespaces AS n USING (namespace_id)
JOIN amends.view_keys AS k USING (namespace_id, partition, key_id)
LEFT JOIN amends.view_rows AS s ON s.namespace_id = v.namespace_id AND s.partition = v.partition AND s.key_id = v.key_id
    AND s.day = 'infinity' AND s.kind = 3
WHERE v.kind = 2;

CREATE VIEW amends.statuses AS
SELECT n.namespace, amends.readable(k.item) AS item, amends.readable(k.location) AS location,
       CASE WHEN v.status LIKE '{"status":"READY"%' THEN 'READY' ELSE 'BLOCKED' END AS status, v.status::json AS payload,
       coalesce(v.present AND v.status LIKE '{"status":"READY"%', false) AS trusted,
       v.version, v.sequence, v.partition, v.cause_offset, amends.readable(v.cause_txn_id) AS cause_txn_id, v.cause_revision, v.repair_index,
       v.repair_count, amends.published_at(v.namespace_id, v.partition, v.sequence) AS published_at, v.applied_at, k.item AS item_bytes, k.location AS location_bytes, v.cause_txn_id AS cause_txn_id_bytes
FROM amends.view_rows AS v
JOIN amends.namespaces AS n USING (namespace_id)
JOIN amends.view_keys AS k USING (namespace_id, partition, key_id)
WHERE v.kind = 3;

-- Decodes format 1 of a journal body (package journal). It is for looking, not for publishing: it checks no checksum. A
-- status is given as blocked, with the number of its reasons.
CREATE FUNCTION amends.journal_changes(body bytea)
RETURNS TABLE (ordinal integer, kind smallint, day date, version bigint, present boolean, close bigint, previous bigint, blocked boolean, reasons integer)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
#variable_conflict use_column
DECLARE
    two64 CONSTANT numeric := 18446744073709551616;
    at integer := 1;
    stop integer := octet_length(body) - 4;
    head integer;
    step bigint;
    n numeric;
    shift numeric;
    b integer;
    days bigint := 0;
    last_close numeric := 0;
    balance numeric := 0;
    earlier numeric := 0;
    field integer;
    fields integer;
    skipped integer;
    r integer;
BEGIN
    IF octet_length(body) < 5 OR get_byte(body, 0) <> 1 THEN
        RAISE EXCEPTION 'journal body of an unknown format' USING ERRCODE = 'data_corrupted';
    END IF;
    ordinal := 0;
    WHILE at < stop LOOP
        head := get_byte(body, at);
        at := at + 1;
        kind := head & 3;
        present := head & 4 <> 0;
        step := head >> 3;
        close := NULL; previous := NULL; blocked := NULL; reasons := NULL; day := NULL;
        -- The numbers that follow: a long step, the version, and the value's one or two.
        fields := CASE WHEN NOT present THEN 2 WHEN kind = 2 THEN 4 ELSE 3 END;
        FOR field IN CASE WHEN step = 31 THEN 1 ELSE 2 END .. fields LOOP
            n := 0; shift := 1;
            LOOP
                b := get_byte(body, at);
                at := at + 1;
                n := n + (b & 127) * shift;
                shift := shift * 128;
                EXIT WHEN b < 128;
            END LOOP;
            IF field = 1 THEN
                step := 31 + n;
            ELSIF field = 2 THEN
                version := n;
                IF kind <> 3 THEN
                    IF step > 0 THEN earlier := balance; END IF;
                    days := days + step;
                    day := DATE '0001-01-01' + (days - 1)::integer;
                END IF;
            ELSIF kind = 3 THEN
                blocked := n % 2 = 1;
                reasons := div(n, 2);
            ELSE
                n := CASE WHEN n % 2 = 0 THEN div(n, 2) ELSE -div(n + 1, 2) END + CASE field WHEN 3 THEN last_close ELSE earlier END;
                n := mod(mod(n + two64 / 2, two64) + two64, two64) - two64 / 2;
                IF field = 3 THEN close := n; ELSE previous := n; END IF;
            END IF;
        END LOOP;
        IF present AND kind <> 3 THEN
            last_close := close;
            IF kind = 1 THEN balance := close; END IF;
        END IF;
        -- A blocked status is the last change: its reasons end the body.
        IF kind = 3 THEN at := stop; END IF;
        RETURN NEXT;
        ordinal := ordinal + 1;
    END LOOP;
END $$;

-- Every output version in emission order, with when it was decided and when, and where, it was published.
CREATE VIEW amends.outbox AS
SELECT n.namespace, j.partition, j.sequence + c.ordinal AS sequence,
       CASE c.kind WHEN 1 THEN 'balance' WHEN 2 THEN 'alert' ELSE 'status' END AS kind,
       amends.readable(k.item) AS item, amends.readable(k.location) AS location, c.day, c.version, c.present, c.close, c.previous, c.blocked, c.reasons,
       j.source_offset AS cause_offset, amends.readable(j.txn_id) AS cause_txn_id, j.revision AS cause_revision,
       c.ordinal AS repair_index, j.outputs AS repair_count, j.committed_at AS created_at, r.acknowledged_at,
       r.output_offset + (j.sequence + c.ordinal - r.first_sequence) AS output_offset,
       k.item AS item_bytes, k.location AS location_bytes, j.txn_id AS cause_txn_id_bytes, j.key_id
FROM amends.journal AS j
JOIN amends.namespaces AS n USING (namespace_id)
JOIN amends.keys AS k USING (namespace_id, partition, key_id)
CROSS JOIN LATERAL amends.journal_changes(j.body) AS c
LEFT JOIN LATERAL (
    SELECT * FROM amends.receipts
    WHERE namespace_id = j.namespace_id AND partition = j.partition AND next_sequence > j.sequence + c.ordinal
    ORDER BY next_sequence LIMIT 1) AS r ON true;

-- The latest version of every output as the worker decided it, published or not.
CREATE VIEW amends.output_state AS
SELECT DISTINCT ON (namespace, partition, key_id, kind, day) *
FROM amends.outbox
ORDER BY namespace, partition, key_id, kind, day, sequence DESC;

-- What is recorded of every key.
CREATE VIEW amends.key_state AS
SELECT n.namespace, k.partition, amends.readable(k.item) AS item, amends.readable(k.location) AS location, k.key_id, j.records, j.first_offset,
       j.last_offset, j.last_at, s.frontier AS snapshot_frontier, s.rows AS snapshot_rows, k.item AS item_bytes, k.location AS location_bytes
FROM amends.keys AS k
JOIN amends.namespaces AS n USING (namespace_id)
LEFT JOIN amends.snapshots AS s USING (namespace_id, partition, key_id)
CROSS JOIN LATERAL (
    SELECT count(*) AS records, min(source_offset) AS first_offset, max(source_offset) AS last_offset, max(committed_at) AS last_at
    FROM amends.journal WHERE namespace_id = k.namespace_id AND partition = k.partition AND key_id = k.key_id) AS j;
