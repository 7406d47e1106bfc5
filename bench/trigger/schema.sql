CREATE SCHEMA peer;
CREATE TABLE peer.offsets (
    partition integer PRIMARY KEY,
    frontier  bigint NOT NULL
);
CREATE TABLE peer.keys (
    key_id    integer PRIMARY KEY,
    item      bytea NOT NULL,
    location  bytea NOT NULL,
    opening   bigint NOT NULL,
    threshold bigint
);
CREATE TABLE peer.movements (
    key_id   integer NOT NULL,
    txn_id   bytea NOT NULL,
    revision bigint NOT NULL,
    day      integer NOT NULL,
    delta    bigint NOT NULL,
    active   boolean NOT NULL,
    PRIMARY KEY (key_id, txn_id)
) WITH (fillfactor = 90);
CREATE TABLE peer.balances (
    key_id    integer NOT NULL,
    day       integer NOT NULL,
    close     bigint NOT NULL,
    movements integer NOT NULL,
    PRIMARY KEY (key_id, day)
) WITH (fillfactor = 70);

CREATE VIEW peer.alerts AS
SELECT key_id, day, previous, close, threshold
FROM (SELECT b.key_id, b.day, b.close, k.threshold,
             coalesce(lag(b.close) OVER (PARTITION BY b.key_id ORDER BY b.day), k.opening) AS previous
      FROM peer.balances b JOIN peer.keys k USING (key_id)) AS closes
WHERE previous >= threshold AND close < threshold;

CREATE FUNCTION peer.shift(k integer, d integer, units bigint, n integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF n > 0 THEN
        INSERT INTO peer.balances
        SELECT k, d, coalesce((SELECT close FROM peer.balances WHERE key_id = k AND day < d ORDER BY day DESC LIMIT 1),
                              (SELECT opening FROM peer.keys WHERE key_id = k)), 0
        ON CONFLICT DO NOTHING;
    END IF;
    IF units <> 0 THEN
        UPDATE peer.balances SET close = close + units WHERE key_id = k AND day >= d;
    END IF;
    IF n <> 0 THEN
        UPDATE peer.balances SET movements = movements + n WHERE key_id = k AND day = d;
    END IF;
    IF n < 0 THEN
        DELETE FROM peer.balances WHERE key_id = k AND day = d AND movements = 0;
    END IF;
END $$;

CREATE FUNCTION peer.repair() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.active AND NEW.active AND OLD.day = NEW.day THEN
        PERFORM peer.shift(NEW.key_id, NEW.day, NEW.delta - OLD.delta, 0);
        RETURN NULL;
    END IF;
    IF NEW.active THEN
        PERFORM peer.shift(NEW.key_id, NEW.day, NEW.delta, 1);
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.active THEN
        PERFORM peer.shift(OLD.key_id, OLD.day, -OLD.delta, -1);
    END IF;
    RETURN NULL;
END $$;
