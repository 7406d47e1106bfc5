package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"amends/internal/faultwire"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

var testOutput = manifest.Output{Topic: "output", Incarnation: "kafka:ff112233445566778899aabbccddeeff", Partitions: 2}

// world is a namespace seen through a proxy that loses replies, and directly.
type world struct {
	*testing.T
	ctx    context.Context
	proxy  *faultwire.Proxy
	shot   *faultwire.Shot     // what the proxy does once
	ns     *postgres.Namespace // through the proxy
	direct *postgres.Namespace
	url    string
}

func newWorld(t *testing.T, bound bool) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, url: pgtest.New(t, pgtest.Fast)}
	direct := open(t, w.url)
	cfg, err := manifest.Default("outcomes", "kafka:00112233445566778899aabbccddeeff")
	w.ok(err)
	w.direct, err = direct.Init(ctx, cfg, "source")
	w.ok(err)
	if bound {
		w.ok(w.direct.Bind(ctx, testOutput))
	}
	w.proxy = faultwire.New(t, w.url)
	w.ns, err = open(t, w.proxy.URL()).Namespace(ctx, cfg)
	w.ok(err)
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("unexpected error: %v", err)
	}
}

func (w *world) fails(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("got error %v, want %v", err, want)
	}
	if !w.shot.Done() {
		w.Fatal("the proxy did not act")
	}
}

func (w *world) equal(what string, got, want any) {
	w.Helper()
	if d := cmp.Diff(want, got); d != "" {
		w.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func (w *world) observe() store.Owned {
	w.Helper()
	o, err := w.ns.Observe(w.ctx, 0)
	w.ok(err)
	return o
}

func (w *world) commits() int64 {
	w.Helper()
	var n int64
	w.ok(w.direct.Snapshot(w.ctx, func(s store.Snapshot) error {
		states, err := s.Partitions(w.ctx)
		n = states[0].Measurements.Commits
		return err
	}))
	return n
}

// testBatch returns one decision at an offset with one status version.
func testBatch(at ledger.Offset) *ledger.Batch {
	f := &feed{keys: 1, offset: at, next: ledger.Sequence(at), outputs: 1}
	return f.batch(1)
}

// outcomes are both fates of a COMMIT whose answer is lost.
var outcomes = []struct {
	name      string
	committed bool
}{{"request lost", false}, {"reply lost", true}}

func eachOutcome(t *testing.T, bound bool, run func(w *world, committed bool)) {
	for _, o := range outcomes {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, bound)
			run(w, o.committed)
		})
	}
}

func (w *world) cut(committed bool) {
	action := faultwire.CutBefore
	if committed {
		action = faultwire.CutAfter
	}
	w.shot = w.proxy.Arm(action, 0, faultwire.Named("COMMIT"))
}

func TestSC18CommitOutcomeIsReadUnderTheLock(t *testing.T) {
	eachOutcome(t, false, func(w *world, committed bool) {
		o, err := w.ns.Claim(w.ctx, 0)
		w.ok(err)
		w.cut(committed)
		batch := testBatch(0)
		w.fails(w.ns.Commit(w.ctx, o.Token, batch), store.ErrCommitUnknown)
		seen := w.observe()
		w.equal("token", seen.Token, o.Token)
		if committed {
			w.equal("frontier", seen.Frontier, ledger.Frontier(1))
		} else {
			w.equal("frontier", seen.Frontier, ledger.Frontier(0))
			w.ok(w.ns.Commit(w.ctx, o.Token, batch))
		}
		w.equal("SC42 counted once", w.commits(), int64(1))
		w.ok(w.ns.Commit(w.ctx, o.Token, testBatch(1)))
	})
}

func TestSC18ConnectionLostBeforeCommitIsDefinite(t *testing.T) {
	w := newWorld(t, false)
	o, err := w.ns.Claim(w.ctx, 0)
	w.ok(err)
	w.ok(w.ns.Commit(w.ctx, o.Token, testBatch(0)))
	w.shot = w.proxy.Arm(faultwire.CutAfter, 0, faultwire.Named("advance"))
	err = w.ns.Commit(w.ctx, o.Token, testBatch(1))
	w.fails(err, store.ErrUnavailable)
	if errors.Is(err, store.ErrCommitUnknown) {
		t.Fatalf("unknown although COMMIT was never sent: %v", err)
	}
	w.equal("frontier", w.observe().Frontier, ledger.Frontier(1))
	w.equal("SC42 untouched by a rollback", w.commits(), int64(1))
	w.ok(w.ns.Commit(w.ctx, o.Token, testBatch(1)))
}

// TestClaimOutcomeIsToldByItsNonce shows N5.
func TestClaimOutcomeIsToldByItsNonce(t *testing.T) {
	eachOutcome(t, false, func(w *world, committed bool) {
		w.observe()
		w.cut(committed)
		mine, err := w.ns.Claim(w.ctx, 0)
		w.fails(err, store.ErrCommitUnknown)
		seen := w.observe()
		if committed {
			w.equal("owned", seen, mine)
			w.ok(w.ns.Commit(w.ctx, mine.Token, testBatch(0)))
			return
		}
		w.equal("epoch", seen.Token.Epoch, ledger.Epoch(0))
		if seen.Token.Nonce == mine.Token.Nonce {
			w.Fatal("the nonce of a claim that did not commit is installed")
		}
	})
}

func TestSC41BindOutcomeIsResolvedByBindingAgain(t *testing.T) {
	eachOutcome(t, false, func(w *world, committed bool) {
		w.cut(committed)
		w.fails(w.ns.Bind(w.ctx, testOutput), store.ErrCommitUnknown)
		bound, err := w.ns.Binding(w.ctx)
		w.ok(err)
		w.equal("bound", bound != nil, committed)
		w.ok(w.ns.Bind(w.ctx, testOutput))
	})
}

func TestReceiptOutcomeIsResolvedByTheSameReceipt(t *testing.T) {
	eachOutcome(t, true, func(w *world, committed bool) {
		o, err := w.direct.Claim(w.ctx, 0)
		w.ok(err)
		w.ok(w.direct.Commit(w.ctx, o.Token, testBatch(0)))
		l, err := w.direct.AcquireService(w.ctx, store.Relay, 0, "relay", time.Minute)
		w.ok(err)
		w.cut(committed)
		r := store.Receipt{First: 0, Next: 1, Offset: 3}
		w.fails(w.ns.Acknowledge(w.ctx, l, r), store.ErrCommitUnknown)
		position, err := w.ns.RelayPosition(w.ctx, 0)
		w.ok(err)
		w.equal("moved", position.Sequence == 1, committed)
		w.ok(w.ns.Acknowledge(w.ctx, l, r))
		position, err = w.ns.RelayPosition(w.ctx, 0)
		w.ok(err)
		w.equal("output", position.Output, ledger.Frontier(4))
	})
}

func TestViewOutcomeIsReadFromThePosition(t *testing.T) {
	eachOutcome(t, true, func(w *world, committed bool) {
		l, err := w.direct.AcquireService(w.ctx, store.View, 0, "view", time.Minute)
		w.ok(err)
		w.cut(committed)
		page := viewPage(&feed{keys: 3}, store.ViewPosition{Cause: -1}, 0, 6, 100)
		w.fails(w.ns.ApplyViewInput(w.ctx, l, page), store.ErrCommitUnknown)
		position, err := w.ns.ViewPosition(w.ctx, 0)
		w.ok(err)
		w.equal("moved", position.Sequence == 6, committed)
		if !committed {
			w.ok(w.ns.ApplyViewInput(w.ctx, l, page))
		}
		next := viewPage(&feed{keys: 3}, page.Next, 0, 6, 6)
		for i := range next.Changes {
			next.Changes[i].Before, next.Changes[i].Row.Version = 1, 2
		}
		w.ok(w.ns.ApplyViewInput(w.ctx, l, next))
	})
}

func TestLeaseOutcomeIsResolvedByAcquiringAgain(t *testing.T) {
	eachOutcome(t, true, func(w *world, committed bool) {
		w.cut(committed)
		_, err := w.ns.AcquireService(w.ctx, store.View, 0, "view", time.Minute)
		w.fails(err, store.ErrCommitUnknown)
		l, err := w.ns.AcquireService(w.ctx, store.View, 0, "view", time.Minute)
		w.ok(err)
		term := int64(1)
		if committed {
			term = 2
		}
		w.equal("term", l.Term, term)
	})
}

func TestInitOutcomeIsResolvedByInitAgain(t *testing.T) {
	eachOutcome(t, false, func(w *world, committed bool) {
		cfg, err := manifest.Default("second", "kafka:00112233445566778899aabbccddeeff")
		w.ok(err)
		db := open(w.T, w.proxy.URL())
		w.cut(committed)
		_, err = db.Init(w.ctx, cfg, "source")
		w.fails(err, store.ErrCommitUnknown)
		n, err := db.Init(w.ctx, cfg, "source")
		w.ok(err)
		_, err = n.Claim(w.ctx, 1)
		w.ok(err)
	})
}

// TestCommitNotReplicatedIsUnknownAndSaysSo shows F4.
func TestCommitNotReplicatedIsUnknownAndSaysSo(t *testing.T) {
	server := pgtest.Server(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url := server.New()
	db := open(t, url)
	cfg, err := manifest.Default("replicated", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	n, err := db.Init(ctx, cfg, "source")
	if err != nil {
		t.Fatal(err)
	}
	o, err := n.Claim(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	admin := connect(t, url)
	execSQL(t, admin, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	execSQL(t, admin, "SELECT pg_reload_conf()")
	defer func() {
		execSQL(t, admin, "ALTER SYSTEM RESET synchronous_standby_names")
		execSQL(t, admin, "SELECT pg_reload_conf()")
	}()
	for names := ""; names != "nobody"; {
		if err := admin.QueryRow(ctx, "SELECT current_setting('synchronous_standby_names')").Scan(&names); err != nil {
			t.Fatal(err)
		}
	}
	awaitReplication(ctx, t, url, admin)
	result := make(chan error, 1)
	go func() { result <- n.Commit(ctx, o.Token, testBatch(0)) }()
	waiting := int32(0)
	for waiting == 0 {
		err := admin.QueryRow(ctx, "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	execSQL(t, admin, "SELECT pg_cancel_backend($1)", waiting)
	err = <-result
	if !errors.Is(err, store.ErrNotReplicated) || !errors.Is(err, store.ErrCommitUnknown) {
		t.Fatalf("got %v", err)
	}
	seen, err := n.Observe(ctx, 0)
	if err != nil || seen.Frontier != 1 {
		t.Fatalf("observed %+v, %v", seen, err)
	}
}

// awaitReplication waits until commits wait for a standby: another process of the server tells the others of the setting.
func awaitReplication(ctx context.Context, t *testing.T, url string, admin *pgx.Conn) {
	t.Helper()
	conn := connect(t, url)
	for waits := false; !waits; {
		written := make(chan error, 1)
		go func() {
			_, err := conn.Exec(ctx, "COMMENT ON SCHEMA amends IS 'written'")
			written <- err
		}()
		var err error
		for done := false; !done; {
			if !waits {
				const sql = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep')"
				if err := admin.QueryRow(ctx, sql, int32(conn.PgConn().PID())).Scan(&waits); err != nil {
					t.Fatal(err)
				}
				if waits {
					execSQL(t, admin, "SELECT pg_cancel_backend($1)", int32(conn.PgConn().PID()))
				}
			}
			select {
			case err = <-written:
				done = true
			case <-time.After(time.Millisecond):
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestServerRestartAndTimelineChange shows F5.
func TestServerRestartAndTimelineChange(t *testing.T) {
	server := pgtest.Server(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	db := open(t, server.New())
	cfg, err := manifest.Default("restarted", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	n, err := db.Init(ctx, cfg, "source")
	if err != nil {
		t.Fatal(err)
	}
	o, err := n.Claim(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := db.Server(ctx); err != nil || seen != o.Token.Server {
		t.Fatalf("%+v, %v", seen, err)
	}
	server.Kill()
	for err = nil; err == nil; { // a backend may answer until it notices that the postmaster is gone
		_, err = db.Server(ctx)
	}
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("while the server is away, by a connection that was open: %v", err)
	}
	if err := n.Commit(ctx, o.Token, testBatch(0)); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("while the server is away: %v", err)
	}
	if _, err := n.Observe(ctx, 0); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("while the server is away: %v", err)
	}
	server.Start()
	if err := n.Commit(ctx, o.Token, testBatch(0)); err != nil {
		t.Fatalf("after a restart under the same token: %v", err)
	}
	promote(t, server)
	err = store.ErrUnavailable
	for errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil { // until recovery has ended
		err = n.Commit(ctx, o.Token, testBatch(1))
	}
	if !errors.Is(err, store.ErrServerChanged) {
		t.Fatalf("after a promotion: %v", err)
	}
	again, err := n.Claim(ctx, 0)
	if err != nil || again.Frontier != 1 || again.Token.Server == o.Token.Server {
		t.Fatalf("claimed %+v, %v", again, err)
	}
	if seen, err := db.Server(ctx); err != nil || seen != again.Token.Server {
		t.Fatalf("%+v, %v", seen, err)
	}
	if err := n.Commit(ctx, again.Token, testBatch(1)); err != nil {
		t.Fatal(err)
	}
}
