package schema

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

func openEmpty(t *testing.T) (*session.Pool, *pgx.Conn) {
	t.Helper()
	url := pgtest.New(t, pgtest.Fast)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pool, err := session.Open(ctx, session.Config{URL: url, AllowFsyncOff: true, Application: "amends"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return pool, conn
}

func run(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// populate are rows for the tables that a schema version brings.
var populate = map[int]string{
	1: `INSERT INTO amends.namespaces (partitions, storage_format, quantity_scale, namespace, source_topic, source_incarnation, digest, config)
		VALUES (2, 1, 3, 'old', 'source', 'kafka:00112233445566778899aabbccddeeff', sha256('{}'), '{}');
		INSERT INTO amends.partitions (namespace_id, partition, epoch, frontier, next_sequence, nonce)
		VALUES (1, 0, 7, 3, 2, '\x000102030405060708090a0b0c0d0e0f'), (1, 1, 0, 0, 0, DEFAULT);
		INSERT INTO amends.keys VALUES (0, 1, 0, '\x610062', 'berlin');
		INSERT INTO amends.journal (source_offset, broker_ms, key_id, revision, quantity, sequence, namespace_id, partition, day, outputs, state, kind,
			class, rejection, digest, txn_id, body)
		VALUES (0, 5, 0, 1, 100, 0, 1, 0, '2026-01-01', 2, 1, 1, 2, NULL, '\x00112233445566778899aabbccddeeff', 'T-1', '\x01'),
			(1, 6, 0, 2, NULL, NULL, 1, 0, NULL, 0, 2, NULL, 1, NULL, '\x10112233445566778899aabbccddeeff', 'T-1', NULL),
			(2, -1, NULL, NULL, NULL, NULL, 1, 0, NULL, 0, NULL, NULL, NULL, 2, '\x20112233445566778899aabbccddeeff', NULL, NULL);
		INSERT INTO amends.quarantine VALUES (2, 0, 2, 1, 0, 2, sha256(''), sha256('{}'), NULL, '{}');
		INSERT INTO amends.snapshots VALUES (0, 1, 1, 1, 0, '\x00ff');`,
	2: `INSERT INTO amends.output_binding VALUES (1, 2, 'output', 'kafka:ff112233445566778899aabbccddeeff', DEFAULT);
		INSERT INTO amends.relay_progress VALUES (1, 0, 3, 2, 5, 0, '\xff0102030405060708090a0b0c0d0e0f');
		INSERT INTO amends.relay_progress VALUES (1, 1);
		INSERT INTO amends.receipts VALUES (0, 2, 3, 0, DEFAULT, 1, 0);
		INSERT INTO amends.view_progress VALUES (1, 0, 4, 5, 2, 0, true, '\xfe0102030405060708090a0b0c0d0e0f');
		INSERT INTO amends.view_progress VALUES (1, 1);
		INSERT INTO amends.view_keys VALUES (0, 1, 0, '\x610062', 'berlin');
		INSERT INTO amends.view_rows (key_id, version, sequence, cause_offset, cause_revision, digest, close, namespace_id, partition, day,
			repair_index, repair_count, kind, present, cause_txn_id, status)
		VALUES (0, 1, 0, 0, 1, -9, 100, 1, 0, '2026-01-01', 0, 2, 1, true, 'T-1', NULL),
			(0, 1, 1, 0, 1, 9, NULL, 1, 0, 'infinity', 1, 2, 3, true, 'T-1', '{"status":"READY","reasons":[],"more":0}');
		INSERT INTO amends.leases VALUES (1, 0, 3, '2026-01-01', 'relay', 'me');
		INSERT INTO amends.protocol_errors VALUES (5, DEFAULT, 1, 0, 'why', NULL, '\x00');`,
	3: `UPDATE amends.partitions SET last_records = 1, last_accepted = 1, last_rejected = 0, last_rewind_days = 0, last_refolded_days = 2,
		last_changed = 3, last_withdrawn = 0, last_lock_ns = 5, last_pre_commit_ns = 6 WHERE partition = 0;`,
	4: `UPDATE amends.partitions SET commits = 4, total_records = 9, samples = '{1,2,3,4,5,6,7,8,9}' WHERE partition = 0;`,
	5: `INSERT INTO amends.verifications (started_at, keys, outputs, differences, namespace_id, quiesced, deep, audit, status, boundary, detail)
		VALUES ('2026-01-01', 1, 2, 0, 1, true, false, false, 'PASS', '[]', '');`,
	9: `INSERT INTO amends.audit_state (frontier, next_sequence, cause_offset, output_offset, differences, state_frontier, verified_at, full_at,
			namespace_id, partition, state_format, state_chunks, state_checksum, status, detail)
		VALUES (3, 2, 0, 5, 0, 3, '2026-01-01', '2026-01-01', 1, 0, 1, 1, sha256('x'), 'PASS', '');
		INSERT INTO amends.audit_chunks VALUES (1, 0, 0, 'x');`,
	10: `INSERT INTO amends.namespaces (partitions, storage_format, quantity_scale, namespace, source_topic, source_incarnation, digest, config)
		VALUES (2, 1, 3, 'rebuilt', 'source', 'kafka:00112233445566778899aabbccddeeff', sha256('{}'), '{}');
		INSERT INTO amends.rebuilds (namespace_id, origin_id, topic, incarnation, phase)
		SELECT n.namespace_id, o.namespace_id, 'rebuilt-output', 'kafka:aa112233445566778899aabbccddeeff', 'refold'
		FROM amends.namespaces AS n, amends.namespaces AS o WHERE n.namespace = 'rebuilt' AND o.namespace = 'old';`,
	11: `UPDATE amends.audit_state SET system_identifier = -5, timeline = 4294967295;`,
}

// dump returns every row of every table as of the columns that existed in the given layout.
func dump(t *testing.T, conn *pgx.Conn, layout map[string][]string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for table, columns := range layout {
		sql := fmt.Sprintf("SELECT t::text FROM (SELECT %s FROM amends.%s) AS t ORDER BY 1", strings.Join(columns, ", "), table)
		rows, err := conn.Query(context.Background(), sql)
		if err != nil {
			t.Fatal(err)
		}
		if all[table], err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// layoutOf returns the columns of every table but the ledger of migrations.
func layoutOf(t *testing.T, conn *pgx.Conn) map[string][]string {
	t.Helper()
	rows, err := conn.Query(context.Background(), `SELECT c.relname, a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'amends'::regnamespace AND c.relkind = 'r' AND c.relname <> 'schema_migrations' AND a.attnum > 0
		ORDER BY 1, a.attnum`)
	if err != nil {
		t.Fatal(err)
	}
	layout := map[string][]string{}
	var table, column string
	if _, err := pgx.ForEachRow(rows, []any{&table, &column}, func() error {
		layout[table] = append(layout[table], column)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return layout
}

func TestSC36PopulatedOlderSchemasAreUpgradedWithNothingChanged(t *testing.T) {
	steps := migrations()
	for k := 1; k <= len(steps); k++ {
		t.Run(fmt.Sprintf("from %d", k), func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			pool, conn := openEmpty(t)
			if err := migrate(ctx, pool, steps[:k]); err != nil {
				t.Fatal(err)
			}
			for version := 1; version <= k; version++ {
				run(t, conn, populate[version])
			}
			layout := layoutOf(t, conn)
			before := dump(t, conn, layout)
			for table, rows := range before {
				if len(rows) == 0 {
					t.Errorf("table %s of version %d is not populated", table, k)
				}
			}
			if k < len(steps) {
				if err := Check(ctx, pool); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "is not applied") {
					t.Errorf("an older schema: %v", err)
				}
			}
			if err := Migrate(ctx, pool); err != nil {
				t.Fatal(err)
			}
			if err := Check(ctx, pool); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, dump(t, conn, layout)); d != "" {
				t.Errorf("changed by the upgrade (-before +after):\n%s", d)
			}
		})
	}
}

func TestMigrateAgainChangesNothing(t *testing.T) {
	ctx := context.Background()
	pool, conn := openEmpty(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := Migrate(ctx, pool); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var n int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM amends.schema_migrations").Scan(&n); err != nil || n != len(migrations()) {
		t.Fatalf("%d migrations recorded, %v", n, err)
	}
	status, err := Status(ctx, pool)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range status {
		if !m.Known || !m.Applied || m.Stored != m.Checksum || m.Version != i+1 {
			t.Errorf("status %+v", m)
		}
	}
}

func TestSC36ASchemaThatIsNotThisBinarysIsRefused(t *testing.T) {
	last := len(migrations())
	for name, c := range map[string]struct{ sql, says string }{
		"changed checksum": {`UPDATE amends.schema_migrations SET checksum = sha256('x') WHERE version = 2`, "migration 2 (transport) has checksum"},
		"gap":              {`DELETE FROM amends.schema_migrations WHERE version = 3`, "migration 3 (last_measurement) is missing below"},
		"newer": {fmt.Sprintf(`INSERT INTO amends.schema_migrations (version, name, checksum) VALUES (%d, 'later', sha256('x'))`, last+1),
			fmt.Sprintf("migration %d (later) is unknown to this binary", last+1)},
		"both": {`UPDATE amends.schema_migrations SET checksum = sha256('x') WHERE version IN (1, 4)`, "migration 4 (cumulative) has checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			pool, conn := openEmpty(t)
			if err := Migrate(ctx, pool); err != nil {
				t.Fatal(err)
			}
			run(t, conn, c.sql)
			for _, err := range []error{Check(ctx, pool), Migrate(ctx, pool)} {
				if !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want %q", err, c.says)
				}
			}
		})
	}
}

func TestAFailedMigrationLeavesNothing(t *testing.T) {
	ctx := context.Background()
	pool, conn := openEmpty(t)
	steps := append(migrations()[:2:2], migration{name: "broken", version: 3, sql: "CREATE TABLE amends.half (); SELECT 1 / 0"})
	if err := migrate(ctx, pool, steps); err == nil {
		t.Fatal("no error")
	}
	if err := Check(ctx, pool); !errors.Is(err, store.ErrNoSchema) {
		t.Fatalf("got %v", err)
	}
	if n := tables(t, conn); n != 0 {
		t.Fatalf("%d tables are left", n)
	}
	if err := Migrate(ctx, pool); err != nil {
		t.Fatal(err)
	}
}

func tables(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'amends'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A released migration never changes: a new one goes to the end of testdata/checksums.txt.
func TestReleasedMigrationsAreAsTheyWere(t *testing.T) {
	pinned, err := os.ReadFile("testdata/checksums.txt")
	if err != nil {
		t.Fatal(err)
	}
	var now strings.Builder
	for _, m := range migrations() {
		fmt.Fprintf(&now, "%x  %04d_%s.sql\n", m.checksum, m.version, m.name)
	}
	if d := cmp.Diff(string(pinned), now.String()); d != "" {
		t.Errorf("migrations (-pinned +now):\n%s", d)
	}
}
