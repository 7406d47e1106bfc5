package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

// promote gives a stopped server's data a new timeline, as a promotion does, and starts it.
func promote(t *testing.T, server *pgtest.Instance) {
	t.Helper()
	server.Stop()
	dir := server.DataDir()
	signal := filepath.Join(dir, "recovery.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "postgresql.auto.conf")
	settings, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, append(settings, "\nrestore_command = 'false'\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	sameOwner(t, signal, conf)
	server.Start()
}

func openNamespace(t *testing.T, o ...func(*postgres.Options)) (*postgres.Namespace, string) {
	t.Helper()
	url := pgtest.New(t, pgtest.Fast)
	cfg, err := manifest.Default("claims", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	n, err := open(t, url, o...).Init(context.Background(), cfg, "source")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Bind(context.Background(), testOutput); err != nil {
		t.Fatal(err)
	}
	return n, url
}

// TestSC38ClaimantEndsTheBackendThatBlocksIt shows F12.
func TestSC38ClaimantEndsTheBackendThatBlocksIt(t *testing.T) {
	for name, c := range map[string]struct {
		lock string
		take func(context.Context, *postgres.Namespace) error
	}{
		"partition": {"SELECT FROM amends.partitions FOR UPDATE", func(ctx context.Context, n *postgres.Namespace) error {
			_, err := n.Claim(ctx, 0)
			return err
		}},
		"relay": {"SELECT FROM amends.relay_progress FOR UPDATE", func(ctx context.Context, n *postgres.Namespace) error {
			_, err := n.AcquireService(ctx, store.Relay, 0, "r", time.Minute)
			return err
		}},
		"view": {"SELECT FROM amends.view_progress FOR UPDATE", func(ctx context.Context, n *postgres.Namespace) error {
			_, err := n.AcquireService(ctx, store.View, 0, "v", time.Minute)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ended atomic.Int32
			n, url := openNamespace(t, func(o *postgres.Options) { o.Terminated = func(pid int32) { ended.Store(pid) } })
			silent := connect(t, url)
			execSQL(t, silent, "BEGIN")
			execSQL(t, silent, c.lock)
			began := time.Now()
			if err := c.take(context.Background(), n); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < postgres.BlockedAfter {
				t.Errorf("it did not wait: %v", took)
			}
			if got := uint32(ended.Load()); got != silent.PgConn().PID() {
				t.Errorf("ended %d, the blocker was %d", got, silent.PgConn().PID())
			}
			if _, err := silent.Exec(context.Background(), "COMMIT"); err == nil {
				t.Error("the silent backend still commits")
			}
		})
	}
}

func TestSC32LockTimeoutIsDefinite(t *testing.T) {
	t.Parallel()
	n, url := openNamespace(t)
	ctx := context.Background()
	o, err := n.Claim(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	holder := connect(t, url)
	execSQL(t, holder, "BEGIN")
	execSQL(t, holder, "SELECT FROM amends.partitions FOR UPDATE")
	err = n.Commit(ctx, o.Token, testBatch(0))
	for _, sentinel := range []error{store.ErrCommitUnknown, store.ErrFence, store.ErrUnavailable, nil} {
		if errors.Is(err, sentinel) {
			t.Fatalf("got %v", err)
		}
	}
	if name := fmt.Sprintf("held by process %d of ", holder.PgConn().PID()); !strings.Contains(err.Error(), name) {
		t.Errorf("%q does not say %q", err, name)
	}
	execSQL(t, holder, "ROLLBACK")
	if err := n.Commit(ctx, o.Token, testBatch(0)); err != nil {
		t.Fatal(err)
	}
}

func TestSC42LockTimeIsMeasured(t *testing.T) {
	t.Parallel()
	n, url := openNamespace(t)
	ctx := context.Background()
	o, err := n.Claim(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	holder, watcher := connect(t, url), connect(t, url)
	execSQL(t, holder, "BEGIN")
	execSQL(t, holder, "SELECT FROM amends.partitions FOR UPDATE")
	result := make(chan error, 1)
	go func() { result <- n.Commit(ctx, o.Token, testBatch(0)) }()
	for blocked := false; !blocked; {
		const sql = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))"
		if err := watcher.QueryRow(ctx, sql, int32(holder.PgConn().PID())).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
	}
	const wait = 150 * time.Millisecond
	time.Sleep(wait)
	execSQL(t, holder, "COMMIT")
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	err = n.Snapshot(ctx, func(s store.Snapshot) error {
		states, err := s.Partitions(ctx)
		m := states[0].Measurements
		if m.Last.Lock < int64(wait) || m.Last.PreCommit < m.Last.Lock || m.Total.Lock != m.Last.Lock {
			t.Errorf("lock %d, pre-commit %d, total %d after a wait of %d", m.Last.Lock, m.Last.PreCommit, m.Total.Lock, wait)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSC30BackendEndedIsUnavailableAndTheStoreGoesOn(t *testing.T) {
	t.Parallel()
	n, url := openNamespace(t)
	ctx := context.Background()
	o, err := n.Claim(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	execSQL(t, connect(t, url), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'amends'")
	for at := range 3 {
		if err = n.Commit(ctx, o.Token, testBatch(0)); err == nil {
			return
		}
		if !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("attempt %d: %v", at, err)
		}
	}
	t.Fatal(err)
}

// TestGuardIsLostWithItsSession shows N10.
func TestGuardIsLostWithItsSession(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, pgtest.Fast)
	db := open(t, url)
	ctx := context.Background()
	g, err := db.GuardSource(ctx, "kafka:00")
	if err != nil {
		t.Fatal(err)
	}
	execSQL(t, connect(t, url), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'amends guard'")
	if err := g.Check(ctx); !errors.Is(err, store.ErrFence) {
		t.Fatalf("got %v", err)
	}
	again, err := db.GuardSource(ctx, "kafka:00")
	for n := 0; errors.Is(err, store.ErrServiceBusy) && n < 9_000; n++ { // the server may still be ending the old session
		time.Sleep(10 * time.Millisecond)
		again, err = db.GuardSource(ctx, "kafka:00")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := g.Release(ctx); err != nil {
		t.Fatal(err)
	}
}

// The guard's release returns once the end of its session is seen: until then it is busy, and then the next load begins at once.
func TestGuardIsFreeWhenItsReleaseReturns(t *testing.T) {
	t.Parallel()
	url := pgtest.Server(t).New()
	db, ctx := open(t, url), context.Background()
	g, err := db.GuardSource(ctx, "kafka:00")
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if err := connect(t, url).QueryRow(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'amends guard'").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	released := make(chan error, 1)
	go func() { released <- g.Release(ctx) }()
	select {
	case err := <-released:
		signal(syscall.SIGCONT)
		t.Fatalf("released with %v before the session ended", err)
	case <-time.After(300 * time.Millisecond):
	}
	if _, err := db.GuardSource(ctx, "kafka:00"); !errors.Is(err, store.ErrServiceBusy) {
		t.Errorf("taken while its session has not ended: %v", err)
	}
	signal(syscall.SIGCONT)
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again, err := db.GuardSource(ctx, "kafka:00")
		if err != nil {
			t.Fatalf("after its release: %v", err)
		}
		if err := again.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
