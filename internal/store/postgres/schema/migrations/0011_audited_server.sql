-- The server that a verified cut was compared on, by system identifier and timeline as in an ownership token (S1): what another
-- one holds below the cut nobody has looked at. NULL for a cut of before.
ALTER TABLE amends.audit_state
    ADD COLUMN system_identifier bigint,
    ADD COLUMN timeline bigint,
    ADD CONSTRAINT audit_state_server CHECK ((system_identifier IS NULL) = (timeline IS NULL) AND coalesce(timeline, 1) BETWEEN 1 AND 4294967295);
