package pgtest_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"amends/internal/pgtest"

	"github.com/jackc/pgx/v5"
)

func query(t *testing.T, url, sql string) (value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func TestDatabasesAreTheTestsOwn(t *testing.T) {
	var first string
	t.Run("one", func(t *testing.T) {
		first = pgtest.New(t)
		if got := query(t, first, "SELECT string_agg(x, '' ORDER BY x) FROM unnest(array['a','B','é','_']) x"); got != "B_aé" {
			t.Errorf("order %q, want code points", got)
		}
		if second := pgtest.New(t); second == first {
			t.Error("two calls gave one database")
		}
	})
	if conn, err := pgx.Connect(context.Background(), first); err == nil {
		conn.Close(context.Background())
		t.Error("the database outlived its test")
	}
}

func TestNamedServerLosesOnlyTheTestsDatabases(t *testing.T) {
	server := pgtest.Server(t)
	t.Setenv("AMENDS_TEST_DATABASE_URL", server.URL())
	const databases = "SELECT string_agg(datname, ',' ORDER BY datname) FROM pg_database"
	before := query(t, server.URL(), databases)
	t.Run("inner", func(t *testing.T) {
		if got := query(t, pgtest.New(t), "SELECT current_database()"); !strings.HasPrefix(got, "amends_test_") {
			t.Errorf("database %s", got)
		}
	})
	if after := query(t, server.URL(), databases); after != before {
		t.Errorf("databases %s, before %s", after, before)
	}
}

func TestFsyncIsOnUnlessFast(t *testing.T) {
	if got := query(t, pgtest.New(t), "SHOW fsync"); got != "on" {
		t.Errorf("fsync %s", got)
	}
	t.Setenv("AMENDS_TEST_DATABASE_URL", "") // a named server is as it is
	if got := query(t, pgtest.New(t, pgtest.Fast), "SHOW fsync"); got != "off" {
		t.Errorf("fast: fsync %s", got)
	}
}

// TestKilledServerKeepsItsRows also shows that a drill's server comes back on its port.
func TestKilledServerKeepsItsRows(t *testing.T) {
	s := pgtest.Server(t)
	url := s.New()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE TABLE kept AS SELECT 'yes' AS answer"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []func(){s.Kill, s.Stop} {
		end()
		if lost, err := pgx.Connect(ctx, url); err == nil {
			lost.Close(ctx)
			t.Fatal("the server answers after its end")
		}
		other, err := net.Listen("tcp", net.JoinHostPort(conn.Config().Host, strconv.Itoa(int(conn.Config().Port))))
		if err == nil { // else another process has it indeed
			time.AfterFunc(time.Second, func() { other.Close() })
		}
		s.Start()
		if got := query(t, url, "SELECT answer FROM kept"); got != "yes" {
			t.Errorf("answer %q", got)
		}
	}
	for _, program := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(s.BinDir(), program)); err != nil {
			t.Error(err)
		}
	}
}
