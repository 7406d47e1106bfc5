package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/store/postgres/reader"
)

// crowded is a namespace of 20,000 keys with a balance and a status each, 40,000 journal rows and 5,000 rejected records; five keys
// are blocked and three records are conflicts.
const crowded = `
INSERT INTO amends.keys (key_id, namespace_id, partition, item, location) SELECT n, 1, 0, int8send(n), 'x' FROM generate_series(0, 19999) AS n;
INSERT INTO amends.view_keys (key_id, namespace_id, partition, item, location) SELECT n, 1, 0, int8send(n), 'x' FROM generate_series(0, 19999) AS n;
INSERT INTO amends.view_rows (key_id, version, sequence, cause_offset, cause_revision, digest, close, namespace_id, partition, day, repair_index, repair_count, kind, present, cause_txn_id, status)
SELECT n, 1, n, n, 1, n, CASE k WHEN 1 THEN 5 END, 1, 0, CASE k WHEN 1 THEN DATE '2026-01-01' ELSE 'infinity' END, 0, 1, k, true, 'T',
    CASE WHEN k = 1 THEN NULL WHEN n % 4000 = 7 THEN '{"status":"BLOCKED","reasons":[{"code":"AMBIGUOUS","txn_id":"T","revision":1}],"more":0}' ELSE '{"status":"READY","reasons":[],"more":0}' END
FROM generate_series(0, 19999) AS n, (VALUES (1), (3)) AS kinds (k);
INSERT INTO amends.journal (source_offset, broker_ms, key_id, revision, quantity, namespace_id, partition, day, outputs, state, kind, class, digest, txn_id)
SELECT n, n, n % 20000, 1, 1, 1, 0, '2026-01-01', 0, 1, 1, CASE WHEN n % 15000 = 7 AND n > 7 THEN 3 WHEN n = 59999 THEN 5 ELSE 2 END, '\x00000000000000000000000000000000', 'T'
FROM generate_series(20000, 59999) AS n;
INSERT INTO amends.quarantine (source_offset, key_length, value_length, namespace_id, partition, rejection, key_sha256, value_sha256)
SELECT n, 0, 0, 1, 0, 2, sha256(''), sha256('') FROM generate_series(0, 4999) AS n;
`

// What an operator asks again and again finds rare rows by their indexes: no statement reads all keys, all rows of the view or the
// whole journal. The plans are the same before the tables are analyzed and after.
func TestOperatorsQuestionsUseTheirIndexes(t *testing.T) {
	ctx := context.Background()
	url := pgtest.New(t, pgtest.Fast)
	db, err := Open(ctx, Options{URL: url, AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	cfg, err := manifest.Default("demo", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	ns, err := db.Init(ctx, cfg, "source")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, step := range []string{crowded, "ANALYZE"} {
		if _, err := conn.PgConn().Exec(ctx, step).ReadAll(); err != nil {
			t.Fatal(err)
		}
		plans(t, db)
	}
	err = ns.Look(ctx, func(s *reader.Snapshot) error {
		counts, err := s.CountBlocked(ctx)
		if err != nil {
			return err
		}
		conflicts, err := s.CountConflicting(ctx)
		if err != nil {
			return err
		}
		if counts[0] != 5 || conflicts != 3 {
			t.Errorf("%v blocked, %d conflicts; want 5 and 3", counts, conflicts)
		}
		page, err := s.BlockedKeys(ctx, -1, 0, 2)
		if err != nil {
			return err
		}
		rest, err := s.BlockedKeys(ctx, page[1].Cause.Partition, page[1].After, 10)
		if err != nil {
			return err
		}
		if len(page) != 2 || len(rest) != 3 || page[0].After != 7 || rest[0].After != 8007 || rest[2].After != 16007 || page[0].Status.Reasons[0].Code != ledger.Ambiguous {
			t.Errorf("pages %+v, %+v", page, rest)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// plans compares the plan of each statement with the index that it must walk.
func plans(t *testing.T, db *DB) {
	t.Helper()
	ctx := context.Background()
	s, err := db.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	for _, c := range []struct{ name, args, index string }{
		{"count_blocked", "1", "view_rows_blocked"},
		{"read_blocked", "1, -1, 0, 20", "view_rows_blocked"},
		{"count_conflicts", "1", "journal_conflicts"},
		{"read_conflicts", "1, -1, 0, 0, 20", "journal_conflicts"},
		{"key_assertions", "1, 0, 5, '{}'", "journal_by_key"},
		{"key_changes", "1, 0, 5, 100, 64", "journal_by_key"},
		{"key_counts", "1, 0, 5, '2026-01-01'", "journal_by_key"},
		{"read_rejections", "1, -1, 0, 20", "quarantine_pkey"},
		{"oldest_work", "1", "journal_pkey"},
		{"read_decided", "1, 0, 100, 200", "journal_pkey"},
		{"read_view_rows_by_id", "1, 0, '{}', '{}', '{}', '{}'", "view_keys_identity"},
		{"read_view_rows_by_id", "1, 0, '{}', '{}', '{}', '{}'", "view_rows_pkey"},
	} {
		if err := s.Prepare(ctx, c.name); err != nil {
			t.Fatal(err)
		}
		rows, err := s.RunWith(ctx, fmt.Sprintf("EXPLAIN EXECUTE %s (%s)", c.name, c.args))
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, c.index) || strings.Contains(plan, "Seq Scan on view_rows") || strings.Contains(plan, "Seq Scan on journal") || strings.Contains(plan, "Seq Scan on quarantine") {
			t.Errorf("%s does not walk %s:\n%s", c.name, c.index, plan)
		}
	}
}
