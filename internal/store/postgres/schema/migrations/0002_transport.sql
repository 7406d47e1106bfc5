-- Output transport (S9): the binding, what was published, what the view holds, who may do either, and where it stopped.

CREATE TABLE amends.output_binding (
    namespace_id integer PRIMARY KEY REFERENCES amends.namespaces,
    partitions   integer NOT NULL CONSTRAINT output_binding_partitions CHECK (partitions BETWEEN 1 AND 1024),
    topic        text COLLATE "C" NOT NULL CONSTRAINT output_binding_topic CHECK (topic <> ''),
    incarnation  text COLLATE "C" NOT NULL CONSTRAINT output_binding_incarnation_key UNIQUE
                 CONSTRAINT output_binding_incarnation CHECK (incarnation ~ '^kafka:[0-9a-f]{32}$'),
    bound_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The relay position: term and nonce fence receipts. source_offset is the decision that holds next_sequence - 1.
CREATE TABLE amends.relay_progress (
    namespace_id  integer NOT NULL REFERENCES amends.namespaces,
    partition     integer NOT NULL CONSTRAINT relay_progress_partition CHECK (partition BETWEEN 0 AND 1023),
    term          bigint NOT NULL DEFAULT 0 CONSTRAINT relay_progress_term CHECK (term >= 0),
    next_sequence bigint NOT NULL DEFAULT 0 CONSTRAINT relay_progress_next_sequence CHECK (next_sequence >= 0),
    output_offset bigint NOT NULL DEFAULT 0 CONSTRAINT relay_progress_output_offset CHECK (output_offset >= next_sequence),
    source_offset bigint NOT NULL DEFAULT 0 CONSTRAINT relay_progress_source_offset CHECK (source_offset >= 0),
    nonce         bytea NOT NULL DEFAULT '\x00000000000000000000000000000000' CONSTRAINT relay_progress_nonce CHECK (octet_length(nonce) = 16),
    PRIMARY KEY (namespace_id, partition)
) WITH (fillfactor = 10);

-- Sequences first_sequence .. next_sequence - 1 lie at consecutive output offsets from output_offset on.
-- source_offset is the decision that holds next_sequence - 1.
CREATE TABLE amends.receipts (
    first_sequence  bigint NOT NULL CONSTRAINT receipts_first_sequence CHECK (first_sequence >= 0),
    next_sequence   bigint NOT NULL CONSTRAINT receipts_next_sequence CHECK (next_sequence > first_sequence),
    output_offset   bigint NOT NULL CONSTRAINT receipts_output_offset CHECK (output_offset >= first_sequence),
    source_offset   bigint NOT NULL CONSTRAINT receipts_source_offset CHECK (source_offset >= 0),
    acknowledged_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    namespace_id    integer NOT NULL,
    partition       integer NOT NULL CONSTRAINT receipts_partition CHECK (partition BETWEEN 0 AND 1023),
    PRIMARY KEY (namespace_id, partition, first_sequence),
    CONSTRAINT receipts_next_identity UNIQUE (namespace_id, partition, next_sequence),
    CONSTRAINT receipts_offset_identity UNIQUE (namespace_id, partition, output_offset)
);

-- The view position: term and nonce fence pages. cause_offset is -1 before the first output. stopped is for ever.
CREATE TABLE amends.view_progress (
    namespace_id  integer NOT NULL REFERENCES amends.namespaces,
    partition     integer NOT NULL CONSTRAINT view_progress_partition CHECK (partition BETWEEN 0 AND 1023),
    term          bigint NOT NULL DEFAULT 0 CONSTRAINT view_progress_term CHECK (term >= 0),
    output_offset bigint NOT NULL DEFAULT 0 CONSTRAINT view_progress_output_offset CHECK (output_offset >= next_sequence),
    next_sequence bigint NOT NULL DEFAULT 0 CONSTRAINT view_progress_next_sequence CHECK (next_sequence >= 0),
    cause_offset  bigint NOT NULL DEFAULT -1 CONSTRAINT view_progress_cause_offset CHECK (cause_offset >= -1),
    stopped       boolean NOT NULL DEFAULT false,
    nonce         bytea NOT NULL DEFAULT '\x00000000000000000000000000000000' CONSTRAINT view_progress_nonce CHECK (octet_length(nonce) = 16),
    PRIMARY KEY (namespace_id, partition)
) WITH (fillfactor = 10);

-- The view's own keys, so that it needs nothing of the worker's tables: key_id is the sequence of an output of the key
-- in the page that first held one.
CREATE TABLE amends.view_keys (
    key_id       bigint NOT NULL CONSTRAINT view_keys_key_id CHECK (key_id >= 0),
    namespace_id integer NOT NULL,
    partition    integer NOT NULL CONSTRAINT view_keys_partition CHECK (partition BETWEEN 0 AND 1023),
    item         bytea NOT NULL CONSTRAINT view_keys_item CHECK (octet_length(item) BETWEEN 1 AND 512),
    location     bytea NOT NULL CONSTRAINT view_keys_location CHECK (octet_length(location) BETWEEN 1 AND 512),
    PRIMARY KEY (namespace_id, partition, key_id),
    CONSTRAINT view_keys_identity UNIQUE (namespace_id, item, location)
);

-- One row an output: the members of the envelope last applied, and the first 8 bytes of its SHA-256. The day of a status
-- is infinity, which sorts it last. kind: 1 balance, 2 alert, 3 status. present false is a withdrawal. status is JSON text.
CREATE TABLE amends.view_rows (
    key_id         bigint NOT NULL,
    version        bigint NOT NULL CONSTRAINT view_rows_version CHECK (version >= 1),
    sequence       bigint NOT NULL CONSTRAINT view_rows_sequence CHECK (sequence >= 0),
    cause_offset   bigint NOT NULL CONSTRAINT view_rows_cause_offset CHECK (cause_offset >= 0),
    cause_revision bigint NOT NULL CONSTRAINT view_rows_cause_revision CHECK (cause_revision >= 1),
    digest         bigint NOT NULL,
    applied_at     timestamptz NOT NULL DEFAULT statement_timestamp(),
    close          bigint,
    previous       bigint,
    threshold      bigint,
    namespace_id   integer NOT NULL,
    partition      integer NOT NULL CONSTRAINT view_rows_partition CHECK (partition BETWEEN 0 AND 1023),
    day            date NOT NULL,
    repair_index   integer NOT NULL,
    repair_count   integer NOT NULL CONSTRAINT view_rows_repair CHECK (repair_count BETWEEN 1 AND 73051 AND repair_index BETWEEN 0 AND repair_count - 1),
    kind           smallint NOT NULL CONSTRAINT view_rows_kind CHECK (kind BETWEEN 1 AND 3),
    present        boolean NOT NULL,
    cause_txn_id   bytea NOT NULL CONSTRAINT view_rows_cause_txn_id CHECK (octet_length(cause_txn_id) BETWEEN 1 AND 512),
    status         text COLLATE "C",
    PRIMARY KEY (namespace_id, partition, key_id, day, kind),
    CONSTRAINT view_rows_day CHECK (CASE WHEN kind = 3 THEN day = 'infinity' ELSE day BETWEEN '0001-01-01' AND '9999-12-31' END),
    CONSTRAINT view_rows_payload CHECK (CASE
        WHEN NOT present THEN close IS NULL AND previous IS NULL AND threshold IS NULL AND status IS NULL
        WHEN kind = 1 THEN close IS NOT NULL AND previous IS NULL AND threshold IS NULL AND status IS NULL
        WHEN kind = 2 THEN close IS NOT NULL AND previous IS NOT NULL AND threshold IS NOT NULL AND status IS NULL
        ELSE status IS NOT NULL AND close IS NULL AND previous IS NULL AND threshold IS NULL END)
) WITH (fillfactor = 50);

-- Who may try to publish or materialize a partition. What fences is the term in the position rows.
CREATE TABLE amends.leases (
    namespace_id integer NOT NULL REFERENCES amends.namespaces,
    partition    integer NOT NULL CONSTRAINT leases_partition CHECK (partition BETWEEN 0 AND 1023),
    term         bigint NOT NULL DEFAULT 0 CONSTRAINT leases_term CHECK (term >= 0),
    expires_at   timestamptz NOT NULL DEFAULT '-infinity',
    role         text COLLATE "C" NOT NULL CONSTRAINT leases_role CHECK (role IN ('relay', 'view')),
    holder       text NOT NULL DEFAULT '',
    PRIMARY KEY (namespace_id, partition, role)
) WITH (fillfactor = 50);

-- The record that stopped a partition of the view, with its exact bytes (NULL: absent). There is no skip.
CREATE TABLE amends.protocol_errors (
    output_offset bigint NOT NULL CONSTRAINT protocol_errors_output_offset CHECK (output_offset >= 0),
    found_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    namespace_id  integer NOT NULL,
    partition     integer NOT NULL CONSTRAINT protocol_errors_partition CHECK (partition BETWEEN 0 AND 1023),
    reason        text NOT NULL CONSTRAINT protocol_errors_reason CHECK (reason <> ''),
    key           bytea,
    value         bytea,
    PRIMARY KEY (namespace_id, partition)
);
