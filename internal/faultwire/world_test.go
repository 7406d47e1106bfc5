package faultwire_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("amends/internal/embedded/process.supervise"))
}

// database is a migrated database, reached directly by setups and checkers. Whatever fails in them ends the test.
type database struct {
	t    testing.TB
	url  string
	db   *postgres.DB
	conn *pgxpool.Pool
	name int
	mu   sync.Mutex // guards name
	// making is held while a namespace is made.
	making sync.Mutex
}

// server starts a PostgreSQL for many short connections: no disk waits for it and no password is checked, as nothing here
// ends it by force.
func server(t testing.TB) *pgtest.Instance {
	t.Helper()
	s := pgtest.Server(t, "max_connections=300", "fsync=off")
	rules := filepath.Join(s.DataDir(), "pg_hba.conf")
	if err := os.WriteFile(rules, []byte("host all all 127.0.0.1/32 trust\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(context.Background(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	return s
}

// newDatabase makes a database on a server, reached by so many connections twice; migrated is false where the migration itself is tried.
func newDatabase(t testing.TB, url string, migrated bool, conns int32) *database {
	t.Helper()
	ctx := context.Background()
	d := &database{t: t, url: url}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = conns
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan" // planning a dump takes longer than running it
	config.ConnConfig.RuntimeParams["jit"] = "off"
	if d.conn, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.conn.Close)
	d.db = openDB(t, url, conns)
	t.Cleanup(d.db.Close)
	if migrated {
		if err := d.db.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func openDB(t testing.TB, url string, conns int32) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(context.Background(), postgres.Options{URL: url, AllowFsyncOff: true, MaxConns: conns})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// config is that of a new namespace of one partition and open keys.
func (d *database) config() *manifest.Config {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name++
	cfg, err := manifest.New(manifest.Config{Namespace: fmt.Sprintf("n%d", d.name), SourceIncarnation: fmt.Sprintf("kafka:%032x", 1_000+d.name),
		LedgerOrigin: origin, Partitions: 1, OpenKeys: &manifest.Terms{}})
	if err != nil {
		d.t.Fatal(err)
	}
	return cfg
}

// dumpSQL shows everything that is stored of a namespace, but for clocks, random numbers, ids that the
// database gives, and digests of bytes that hold the namespace's name.
// What a claim or an acquisition may add is a parameter: an extra epoch or term is harmless (S12).
const dumpSQL = `
WITH n AS (SELECT namespace_id AS id FROM amends.namespaces WHERE namespace = $1)
SELECT coalesce(string_agg(line, E'\n' ORDER BY line), '') FROM (
	SELECT 'namespace ' || (to_jsonb(x) - '{namespace_id,created_at,namespace,source_incarnation,source_topic,digest,config}'::text[])::text FROM amends.namespaces x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'partition ' || (to_jsonb(x) - '{namespace_id,nonce,samples,last_lock_ns,last_pre_commit_ns,total_lock_ns,total_pre_commit_ns}'::text[] - CASE WHEN $2 THEN 'epoch' ELSE '' END)::text
		|| cardinality(samples) FROM amends.partitions x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'key ' || (to_jsonb(x) - 'namespace_id')::text FROM amends.keys x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'journal ' || (to_jsonb(x) - '{namespace_id,committed_at}'::text[])::text FROM amends.journal x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'quarantine ' || (to_jsonb(x) - 'namespace_id')::text FROM amends.quarantine x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'snapshot ' || (to_jsonb(x) - 'namespace_id')::text FROM amends.snapshots x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'binding ' || (to_jsonb(x) - '{namespace_id,bound_at,topic,incarnation}'::text[])::text FROM amends.output_binding x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'relay ' || (to_jsonb(x) - '{namespace_id,nonce}'::text[] - CASE WHEN $2 THEN 'term' ELSE '' END)::text FROM amends.relay_progress x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'view ' || (to_jsonb(x) - '{namespace_id,nonce}'::text[] - CASE WHEN $2 THEN 'term' ELSE '' END)::text FROM amends.view_progress x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'receipt ' || (to_jsonb(x) - '{namespace_id,acknowledged_at}'::text[])::text FROM amends.receipts x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'view key ' || (to_jsonb(x) - 'namespace_id')::text FROM amends.view_keys x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'view row ' || (to_jsonb(x) - '{namespace_id,applied_at,digest}'::text[])::text FROM amends.view_rows x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'lease ' || (to_jsonb(x) - '{namespace_id,expires_at}'::text[] - CASE WHEN $2 THEN 'term' ELSE '' END)::text
		|| (expires_at > clock_timestamp()) FROM amends.leases x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'violation ' || (to_jsonb(x) - '{namespace_id,found_at}'::text[])::text FROM amends.protocol_errors x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'verification ' || (to_jsonb(x) - '{namespace_id,finished_at,verification_id}'::text[])::text FROM amends.verifications x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'audit ' || (to_jsonb(x) - '{namespace_id,checked_at,verified_at,full_at}'::text[])::text || (verified_at IS NOT NULL) || (full_at IS NOT NULL)
		FROM amends.audit_state x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'audit chunk ' || (to_jsonb(x) - 'namespace_id')::text FROM amends.audit_chunks x, n WHERE namespace_id = n.id
	UNION ALL SELECT 'rebuild ' || (to_jsonb(x) - '{namespace_id,origin_id,started_at,finished_at,incarnation}'::text[])::text || (incarnation IS NOT NULL)
		|| (finished_at IS NOT NULL) || (SELECT namespace_id = origin_id FROM amends.namespaces WHERE namespace = replace($1, '-rebuilt', '')) FROM amends.rebuilds x, n WHERE namespace_id = n.id
) AS t (line)`

// dump shows a namespace; harmless leaves out what an extra claim adds.
func (d *database) dump(namespace string, harmless bool) string {
	var text string
	if err := d.conn.QueryRow(context.Background(), dumpSQL, namespace, harmless).Scan(&text); err != nil {
		panic(caseError{fmt.Errorf("dump: %w", err)})
	}
	return strings.ReplaceAll(text, `"`+namespace+`"`, `"namespace"`)
}

// caseError ends a case, which runs in a goroutine of its own.
type caseError struct{ error }

// must ends the case on an error.
func must(err error) {
	if err != nil {
		panic(caseError{err})
	}
}

func ensure(ok bool, format string, args ...any) {
	if !ok {
		panic(caseError{fmt.Errorf(format, args...)})
	}
}

// guarded runs a case and returns what ended it.
func guarded(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ours := r.(caseError)
			if !ours {
				panic(r)
			}
			err = e.error
		}
	}()
	f()
	return nil
}

// class is what a caller may conclude from an error.
type class string

const (
	success     class = "success"
	unknown     class = "unknown"
	fenced      class = "fenced"
	unavailable class = "unavailable"
	definite    class = "definite"
)

func classOf(err error) class {
	switch {
	case err == nil:
		return success
	case errors.Is(err, store.ErrCommitUnknown):
		return unknown
	case errors.Is(err, store.ErrFence):
		return fenced
	case errors.Is(err, store.ErrUnavailable):
		return unavailable
	}
	return definite
}

// expiring is a context whose deadline passes when the test says so.
type expiring struct {
	context.Context
	done chan struct{}
}

func newExpiring(parent context.Context) *expiring {
	return &expiring{Context: parent, done: make(chan struct{})}
}

func (e *expiring) Done() <-chan struct{} { return e.done }

func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return e.Context.Err()
	}
}

// expireAfter lets the deadline pass a moment after fired closes; stop ends the watching.
func (e *expiring) expireAfter(fired <-chan struct{}, d time.Duration) (stop func()) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-fired:
			select {
			case <-time.After(d):
			case <-stopped:
			}
			close(e.done)
		case <-stopped:
		}
	}()
	return func() { close(stopped); <-ended }
}
