-- Processing (S8): what a worker owns and what it has decided. Every table's key begins with the namespace's integer id.
-- Identifiers are bytea: every Unicode scalar value is allowed, U+0000 included (S3).

CREATE TABLE amends.namespaces (
    namespace_id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partitions         integer NOT NULL CONSTRAINT namespaces_partitions CHECK (partitions BETWEEN 1 AND 1024),
    storage_format     integer NOT NULL CONSTRAINT namespaces_storage_format CHECK (storage_format >= 1),
    quantity_scale     integer NOT NULL CONSTRAINT namespaces_quantity_scale CHECK (quantity_scale BETWEEN 0 AND 9),
    namespace          text COLLATE "C" NOT NULL CONSTRAINT namespaces_namespace_key UNIQUE
                       CONSTRAINT namespaces_namespace CHECK (namespace ~ '^[a-z0-9][a-z0-9._-]{0,63}$'),
    source_topic       text COLLATE "C" NOT NULL CONSTRAINT namespaces_source_topic CHECK (source_topic <> ''),
    source_incarnation text COLLATE "C" NOT NULL CONSTRAINT namespaces_source_incarnation CHECK (source_incarnation ~ '^kafka:[0-9a-f]{32}$'),
    digest             bytea NOT NULL CONSTRAINT namespaces_digest CHECK (digest = sha256(config)),
    config             bytea NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row a partition, updated by every commit: lock, fence, frontier. Room for updates within the page.
CREATE TABLE amends.partitions (
    namespace_id  integer NOT NULL REFERENCES amends.namespaces,
    partition     integer NOT NULL CONSTRAINT partitions_partition CHECK (partition BETWEEN 0 AND 1023),
    epoch         bigint NOT NULL DEFAULT 0 CONSTRAINT partitions_epoch CHECK (epoch >= 0),
    frontier      bigint NOT NULL DEFAULT 0 CONSTRAINT partitions_frontier CHECK (frontier >= 0),
    next_sequence bigint NOT NULL DEFAULT 0 CONSTRAINT partitions_next_sequence CHECK (next_sequence >= 0),
    nonce         bytea NOT NULL DEFAULT '\x00000000000000000000000000000000' CONSTRAINT partitions_nonce CHECK (octet_length(nonce) = 16),
    PRIMARY KEY (namespace_id, partition)
) WITH (fillfactor = 10);

-- A key's id is the offset of its first valid record. A key lives on exactly one partition (S1).
CREATE TABLE amends.keys (
    key_id       bigint NOT NULL CONSTRAINT keys_key_id CHECK (key_id >= 0),
    namespace_id integer NOT NULL,
    partition    integer NOT NULL CONSTRAINT keys_partition CHECK (partition BETWEEN 0 AND 1023),
    item         bytea NOT NULL CONSTRAINT keys_item CHECK (octet_length(item) BETWEEN 1 AND 512),
    location     bytea NOT NULL CONSTRAINT keys_location CHECK (octet_length(location) BETWEEN 1 AND 512),
    PRIMARY KEY (namespace_id, partition, key_id),
    CONSTRAINT keys_identity UNIQUE (namespace_id, item, location)
);

-- One row a source record: evidence, state log and outbox in one. Append-only. Columns stand by alignment.
-- The default of committed_at is not volatile: COPY would insert row by row otherwise.
-- state: 1 active, 2 cancelled. kind: 1 receipt, 2 issue, 3 opening_count, 4 closing_count. class: 1 DUPLICATE, 2 APPLIED,
-- 3 CONFLICT, 4 STALE, 5 STALE_CONFLICT. rejection: 1 TOO_LARGE, 2 MALFORMED, 3 UNSUPPORTED_SCHEMA, 4 INVALID_VALUE,
-- 5 OUT_OF_HORIZON, 6 UNKNOWN_KEY, 7 KEY_MISMATCH, 8 ROUTING. broker_ms is the broker's timestamp, for show only.
-- sequence is that of the first of the outputs that body holds packed; all three say "none" together.
CREATE TABLE amends.journal (
    source_offset bigint NOT NULL CONSTRAINT journal_source_offset CHECK (source_offset >= 0),
    committed_at  timestamptz NOT NULL DEFAULT statement_timestamp(),
    broker_ms     bigint NOT NULL,
    key_id        bigint,
    revision      bigint,
    quantity      bigint,
    sequence      bigint,
    namespace_id  integer NOT NULL,
    partition     integer NOT NULL CONSTRAINT journal_partition CHECK (partition BETWEEN 0 AND 1023),
    day           date,
    outputs       integer NOT NULL,
    state         smallint,
    kind          smallint,
    class         smallint,
    rejection     smallint,
    digest        bytea NOT NULL CONSTRAINT journal_digest CHECK (octet_length(digest) = 16),
    txn_id        bytea,
    body          bytea,
    PRIMARY KEY (namespace_id, partition, source_offset),
    CONSTRAINT journal_decided CHECK (CASE WHEN rejection IS NULL
        THEN class IS NOT NULL AND class BETWEEN 1 AND 5 AND key_id IS NOT NULL AND txn_id IS NOT NULL AND revision IS NOT NULL AND state IS NOT NULL
        ELSE rejection BETWEEN 1 AND 8 AND num_nonnulls(class, key_id, txn_id, revision, state, body) = 0 END),
    CONSTRAINT journal_payload CHECK (CASE WHEN state = 1
        THEN kind IS NOT NULL AND quantity IS NOT NULL AND day IS NOT NULL
        ELSE kind IS NULL AND quantity IS NULL AND day IS NULL END),
    CONSTRAINT journal_key_id CHECK (key_id BETWEEN 0 AND source_offset),
    CONSTRAINT journal_txn_id CHECK (octet_length(txn_id) BETWEEN 1 AND 512),
    CONSTRAINT journal_revision CHECK (revision >= 1),
    CONSTRAINT journal_state CHECK (state BETWEEN 1 AND 2),
    CONSTRAINT journal_quantity CHECK (kind BETWEEN 1 AND 4 AND quantity >= CASE WHEN kind <= 2 THEN 1 ELSE 0 END),
    CONSTRAINT journal_day CHECK (day BETWEEN '0001-01-01' AND '9999-12-31'),
    CONSTRAINT journal_outputs CHECK (CASE WHEN outputs = 0
        THEN body IS NULL AND sequence IS NULL
        ELSE outputs BETWEEN 1 AND 73051 AND body IS NOT NULL AND sequence >= 0 AND sequence <= 9223372036854775807 - outputs END)
);

-- Makes keys loadable one by one.
CREATE INDEX journal_by_key ON amends.journal (namespace_id, partition, key_id, source_offset) WHERE key_id IS NOT NULL;

-- The exact bytes of rejected records (S3): NULL was absent; cut to 8,192 and 65,536 bytes only where TOO_LARGE.
CREATE TABLE amends.quarantine (
    source_offset bigint NOT NULL CONSTRAINT quarantine_source_offset CHECK (source_offset >= 0),
    key_length    bigint NOT NULL,
    value_length  bigint NOT NULL,
    namespace_id  integer NOT NULL,
    partition     integer NOT NULL CONSTRAINT quarantine_partition CHECK (partition BETWEEN 0 AND 1023),
    rejection     smallint NOT NULL CONSTRAINT quarantine_rejection CHECK (rejection BETWEEN 1 AND 8),
    key_sha256    bytea NOT NULL CONSTRAINT quarantine_key_sha256 CHECK (octet_length(key_sha256) = 32),
    value_sha256  bytea NOT NULL CONSTRAINT quarantine_value_sha256 CHECK (octet_length(value_sha256) = 32),
    key           bytea,
    value         bytea,
    PRIMARY KEY (namespace_id, partition, source_offset),
    CONSTRAINT quarantine_key CHECK (octet_length(coalesce(key, '')) = CASE WHEN rejection = 1 THEN least(key_length, 8192) ELSE key_length END),
    CONSTRAINT quarantine_value CHECK (octet_length(coalesce(value, '')) = CASE WHEN rejection = 1 THEN least(value_length, 65536) ELSE value_length END)
);

-- Encoded key states as of a frontier: an accelerator for loading, never an authority. Replaced, never a history.
CREATE TABLE amends.snapshots (
    key_id       bigint NOT NULL CONSTRAINT snapshots_key_id CHECK (key_id >= 0),
    frontier     bigint NOT NULL CONSTRAINT snapshots_frontier CHECK (frontier >= 1),
    rows         bigint NOT NULL CONSTRAINT snapshots_rows CHECK (rows >= 0),
    namespace_id integer NOT NULL,
    partition    integer NOT NULL CONSTRAINT snapshots_partition CHECK (partition BETWEEN 0 AND 1023),
    state        bytea NOT NULL,
    PRIMARY KEY (namespace_id, partition, key_id)
);
