package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"amends/internal/absent"
	"amends/internal/embedded"

	"github.com/jackc/pgx/v5"
)

// databaseEnv names an existing server for the tests.
const databaseEnv = "AMENDS_TEST_DATABASE_URL"

// Option changes what New gives.
type Option int

// Fast gives a database on a server with fsync=off, which a store refuses unless it is told otherwise. It has no
// effect with AMENDS_TEST_DATABASE_URL.
const Fast Option = 1

// The test binary's servers. A lazily started process is the one state that must outlive a test.
var (
	durable = sync.OnceValues(func() (*embedded.Postgres, error) { return start(false) })
	fast    = sync.OnceValues(func() (*embedded.Postgres, error) { return start(true) })
)

// New returns the connection string of a new, empty database of UTF-8 text in code point order. When the test ends it is
// closed, with whatever is still connected to it: dropped on a server that goes on, and left to the end of one that
// ends with the test binary, where dropping would only cost a checkpoint.
func New(t testing.TB, options ...Option) string {
	t.Helper()
	admin, end := os.Getenv(databaseEnv), drop
	if admin == "" {
		end = shut
		choose := durable
		for _, o := range options {
			if o == Fast {
				choose = fast
			}
		}
		server, err := choose()
		if err != nil {
			refuse(t, err)
		}
		admin = server.DatabaseURL("postgres")
	}
	return newDatabase(t, admin, end)
}

// Installed ends the test through absent.Skip where this machine has no PostgreSQL to start: for tests whose subject starts one.
func Installed(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if _, err := embedded.Find(ctx, embedded.FindOptions{}); err != nil {
		refuse(t, err)
	}
}

// refuse ends the test: an absence is counted as one, everything else is a failure.
func refuse(t testing.TB, err error) {
	t.Helper()
	var none *embedded.NotFoundError
	if errors.As(err, &none) {
		absent.Skip(t, absent.KindPostgreSQL, "PostgreSQL ("+strings.Join(none.Looked, "; ")+")",
			"install PostgreSQL 15 or newer, or npm, or set AMENDS_POSTGRES_BIN or "+databaseEnv)
	}
	t.Fatalf("start PostgreSQL for the tests: %v", err)
}

func newDatabase(t testing.TB, admin string, end func(t testing.TB, admin, name string)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		t.Fatalf("connect to the server of the tests (%s): %v", databaseEnv, err)
	}
	defer conn.Close(ctx)
	name := "amends_test_" + strconv.Itoa(os.Getpid()) + "_" + strings.ToLower(rand.Text()[:10])
	if err := create(ctx, conn, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, admin, name) })
	address, err := withDatabase(admin, name)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// create makes the database with a collation that compares code points, as far as the server has one.
func create(ctx context.Context, conn *pgx.Conn, name string) error {
	var version int
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return fmt.Errorf("read server version: %w", err)
	}
	locales := []string{"LOCALE 'C.UTF-8'", "LOCALE 'C'"}
	if version >= 170000 {
		locales = append([]string{"LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'"}, locales...)
	}
	var failures []error
	for _, locale := range locales {
		_, err := conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8' "+locale)
		if err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	return fmt.Errorf("create database: %w", errors.Join(failures...))
}

// drop removes the database.
func drop(t testing.TB, admin, name string) {
	finish(t, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

// shut ends the connections to the database and admits no new one: a server of tests has few of them.
func shut(t testing.TB, admin, name string) {
	finish(t, admin, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
}

// finish reports a failure without failing the test: in a drill the server may be gone by design.
func finish(t testing.TB, admin string, statements ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		t.Logf("close the test's database: %v", err)
		return
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			t.Logf("close the test's database: %s: %v", s, err)
		}
	}
}

func withDatabase(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return "", errors.New(databaseEnv + " is not a postgres:// address")
	}
	u.Path = "/" + name
	return u.String(), nil
}
