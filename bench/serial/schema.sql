CREATE SCHEMA serial;
CREATE TABLE serial.partitions (
    partition     integer PRIMARY KEY,
    frontier      bigint NOT NULL,
    next_sequence bigint NOT NULL
);
CREATE TABLE serial.key_state (
    item     bytea NOT NULL,
    location bytea NOT NULL,
    state    jsonb NOT NULL,
    PRIMARY KEY (item, location)
);
CREATE TABLE serial.outputs (
    output_id bytea PRIMARY KEY,
    version   bigint NOT NULL,
    present   boolean NOT NULL,
    payload   jsonb
);
CREATE TABLE serial.outbox (
    partition integer NOT NULL,
    sequence  bigint NOT NULL,
    key       bytea NOT NULL,
    envelope  bytea NOT NULL,
    PRIMARY KEY (partition, sequence)
);
CREATE TABLE serial.receipts (
    partition     integer NOT NULL,
    sequence      bigint NOT NULL,
    output_offset bigint NOT NULL,
    PRIMARY KEY (partition, sequence)
);
CREATE TABLE serial.view_positions (
    partition integer PRIMARY KEY,
    frontier  bigint NOT NULL
);
CREATE TABLE serial.view_rows (
    output_id bytea PRIMARY KEY,
    version   bigint NOT NULL,
    present   boolean NOT NULL,
    envelope  bytea NOT NULL
);
