-- Rebuilds (S11): where a namespace came from, the output topic made for it, and how far it got. A row is made in the
-- transaction that makes its namespace. incarnation is NULL until the creation of the topic was acknowledged and recorded.
CREATE TABLE amends.rebuilds (
    namespace_id integer PRIMARY KEY REFERENCES amends.namespaces,
    origin_id    integer NOT NULL REFERENCES amends.namespaces,
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at  timestamptz,
    topic        text COLLATE "C" NOT NULL CONSTRAINT rebuilds_topic CHECK (topic <> ''),
    incarnation  text COLLATE "C" CONSTRAINT rebuilds_incarnation CHECK (incarnation ~ '^kafka:[0-9a-f]{32}$'),
    phase        text COLLATE "C" NOT NULL DEFAULT 'create' CONSTRAINT rebuilds_phase
                 CHECK (phase IN ('create', 'bind', 'refold', 'drain', 'verify', 'done')),
    status       text COLLATE "C" CONSTRAINT rebuilds_status CHECK (status IN ('PASS', 'BLOCKED')),
    CONSTRAINT rebuilds_origin CHECK (origin_id <> namespace_id),
    CONSTRAINT rebuilds_created CHECK ((incarnation IS NULL) = (phase = 'create')),
    CONSTRAINT rebuilds_finished CHECK ((finished_at IS NOT NULL) = (phase = 'done') AND (status IS NOT NULL) = (phase = 'done'))
);
