package postgres_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"amends/internal/faultwire"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

// sameOwner gives files the owner of their folder.
func sameOwner(t *testing.T, files ...string) {
	t.Helper()
	for _, f := range files {
		info, err := os.Stat(f[:strings.LastIndexByte(f, '/')])
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		if err := os.Chown(f, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

func openError(t *testing.T, o postgres.Options) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	db, err := postgres.Open(ctx, o)
	if err == nil {
		db.Close()
	}
	return err
}

func TestOpenRefusesFsyncOff(t *testing.T) {
	if os.Getenv("AMENDS_TEST_DATABASE_URL") != "" {
		t.Log("the server given is durable")
		return
	}
	err := openError(t, postgres.Options{URL: pgtest.New(t, pgtest.Fast)})
	if err == nil || !strings.Contains(err.Error(), "fsync is off") || errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
}

// TestOpenRefusesAPooler shows F9.
func TestOpenRefusesAPooler(t *testing.T) {
	p := faultwire.New(t, pgtest.New(t, pgtest.Fast))
	p.ShiftPIDs()
	err := openError(t, postgres.Options{URL: p.URL(), AllowFsyncOff: true})
	if err == nil || !strings.Contains(err.Error(), "pooler") || errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
}

func TestOpenOfAServerThatIsAwayIsUnavailable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	u := url.URL{Scheme: "postgres", User: url.UserPassword("amends", "s3cret"), Host: address, Path: "/amends"}
	err = openError(t, postgres.Options{URL: u.String()})
	if !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("got %v", err)
	}
}

func TestOpenOfABadURLIsNotUnavailable(t *testing.T) {
	err := openError(t, postgres.Options{URL: "postgres://amends:s3cret@[::1/x"})
	if err == nil || errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("got %v", err)
	}
}

func TestConstructingWritesNothing(t *testing.T) {
	url := pgtest.New(t, pgtest.Fast)
	ctx := context.Background()
	db, err := postgres.Open(ctx, postgres.Options{URL: url, AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.CheckSchema(ctx); !errors.Is(err, store.ErrNoSchema) {
		t.Fatalf("got %v", err)
	}
	if status, err := db.MigrationStatus(ctx); err != nil || len(status) == 0 || status[0].Applied {
		t.Fatalf("status %+v, %v", status, err)
	}
	var objects int
	const sql = "SELECT count(*) FROM pg_namespace WHERE nspname = 'amends'"
	if err := connect(t, url).QueryRow(ctx, sql).Scan(&objects); err != nil || objects != 0 {
		t.Fatalf("%d schemas, %v", objects, err)
	}
}
