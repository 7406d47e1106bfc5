-- Finished verifications and audit cycles (S10), for people and for status. boundary is a JSON array of cuts.
CREATE TABLE amends.verifications (
    verification_id bigint GENERATED ALWAYS AS IDENTITY,
    started_at      timestamptz NOT NULL,
    finished_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    keys            bigint NOT NULL CONSTRAINT verifications_keys CHECK (keys >= 0),
    outputs         bigint NOT NULL CONSTRAINT verifications_outputs CHECK (outputs >= 0),
    differences     bigint NOT NULL CONSTRAINT verifications_differences CHECK (differences >= 0),
    namespace_id    integer NOT NULL REFERENCES amends.namespaces,
    quiesced        boolean NOT NULL,
    deep            boolean NOT NULL,
    audit           boolean NOT NULL,
    status          text COLLATE "C" NOT NULL CONSTRAINT verifications_status
                    CHECK (status IN ('UNAVAILABLE', 'INCOMPLETE', 'DRIFT', 'BLOCKED', 'PASS')),
    boundary        jsonb NOT NULL CONSTRAINT verifications_boundary CHECK (jsonb_typeof(boundary) = 'array'),
    detail          text NOT NULL,
    PRIMARY KEY (namespace_id, verification_id)
);
