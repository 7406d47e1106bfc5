package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/store/postgres"
	"amends/internal/store/storetest"
	"amends/internal/store/storetest/surface"
)

// suite adapts DB to the suite. It forges by SQL.
type suite struct {
	*postgres.DB
	url string
}

func (s suite) Init(ctx context.Context, cfg *manifest.Config, topic string) (storetest.Namespace, error) {
	n, err := s.DB.Init(ctx, cfg, topic)
	return n, err
}

func (s suite) Namespace(ctx context.Context, cfg *manifest.Config) (storetest.Namespace, error) {
	n, err := s.DB.Namespace(ctx, cfg)
	return n, err
}

func (s suite) GuardSource(ctx context.Context, incarnation string) (storetest.Guard, error) {
	g, err := s.DB.GuardSource(ctx, incarnation)
	return g, err
}

var forgeries = map[surface.Forgery]string{
	surface.Epoch:        `UPDATE amends.partitions SET epoch = $2 WHERE namespace_id = $1 AND partition = 0`,
	surface.RelayTerm:    `UPDATE amends.relay_progress SET term = $2 WHERE namespace_id = $1 AND partition = 0`,
	surface.ViewTerm:     `UPDATE amends.view_progress SET term = $2 WHERE namespace_id = $1 AND partition = 0`,
	surface.NextSequence: `UPDATE amends.partitions SET next_sequence = $2 WHERE namespace_id = $1 AND partition = 0`,
	surface.Totals: `UPDATE amends.partitions SET commits = $2, total_records = $2, total_accepted = $2, total_rejected = $2,
		total_rewind_days = $2, total_refolded_days = $2, total_changed = $2, total_withdrawn = $2, total_lock_ns = $2, total_pre_commit_ns = $2
		WHERE namespace_id = $1 AND partition = 0`,
	surface.AReceipt: `INSERT INTO amends.receipts (first_sequence, next_sequence, output_offset, source_offset, namespace_id, partition)
		VALUES (0, 1 + $2, 0, 0, $1, 0)`,
	surface.AViewRow: `INSERT INTO amends.view_rows (key_id, version, sequence, cause_offset, cause_revision, digest, close, namespace_id,
		partition, day, repair_index, repair_count, kind, present, cause_txn_id) VALUES ($2, 1, 0, 0, 1, 0, 5, $1, 0, '2026-01-01', 0, 1, 1, true, 'T')`,
	surface.AViewError: `INSERT INTO amends.protocol_errors (output_offset, namespace_id, partition, reason) VALUES ($2, $1, 0, 'x')`,
	surface.RelayMoved: `INSERT INTO amends.relay_progress (namespace_id, partition, next_sequence, output_offset) VALUES ($1, 0, 1, 1 + $2)`,
	surface.ViewMoved:  `INSERT INTO amends.view_progress (namespace_id, partition, output_offset) VALUES ($1, 0, 1 + $2)`,
}

func (s suite) Forge(t testing.TB, namespace string, what surface.Forgery, value int64) {
	t.Helper()
	sql, ok := forgeries[what]
	if !ok {
		t.Fatalf("unknown forgery %q", what)
	}
	var id int32
	conn := connect(t, s.url)
	if err := conn.QueryRow(context.Background(), `SELECT namespace_id FROM amends.namespaces WHERE namespace = $1`, namespace).Scan(&id); err != nil {
		t.Fatal(err)
	}
	execSQL(t, conn, sql, id, value)
}

// connect opens a plain connection, closed when the test ends.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execSQL(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// open opens a migrated database of the test's own.
func open(t testing.TB, url string, options ...func(*postgres.Options)) *postgres.DB {
	t.Helper()
	o := postgres.Options{URL: url, AllowFsyncOff: true}
	for _, set := range options {
		set(&o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := postgres.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.DB {
		url := pgtest.New(t, pgtest.Fast)
		return suite{open(t, url), url}
	})
}
