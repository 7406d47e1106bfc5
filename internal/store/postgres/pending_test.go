package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/store"
)

// outboxWorld is a bound namespace whose partition 0 holds one decision with an output, a run of rejected records, and,
// once more is called, another decision with one.
type outboxWorld struct {
	*testing.T
	n     *Namespace
	lease store.Lease
	conn  *pgx.Conn
	owned store.Owned
	run   int64
}

func newOutboxWorld(t *testing.T, run int64) *outboxWorld {
	t.Helper()
	ctx := context.Background()
	url := pgtest.New(t, pgtest.Fast)
	db, err := Open(ctx, Options{URL: url, AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	cfg, err := manifest.Default("outbox", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	w := &outboxWorld{T: t, run: run}
	w.ok(db.Migrate(ctx))
	w.n, err = db.Init(ctx, cfg, "source")
	w.ok(err)
	w.ok(w.n.Bind(ctx, manifest.Output{Topic: "output", Incarnation: "kafka:ff112233445566778899aabbccddeeff", Partitions: cfg.Partitions}))
	w.conn, err = pgx.Connect(ctx, url)
	w.ok(err)
	t.Cleanup(func() { w.conn.Close(ctx) })
	w.owned, err = w.n.Claim(ctx, 0)
	w.ok(err)
	w.lease, err = w.n.AcquireService(ctx, store.Relay, 0, "r", time.Hour)
	w.ok(err)
	w.commit(0, true)
	_, err = w.conn.Exec(ctx, `INSERT INTO amends.journal (source_offset, broker_ms, namespace_id, partition, outputs, rejection, digest)
		SELECT 1 + n, 0, $1, 0, 0, 2, '\x00112233445566778899aabbccddeeff' FROM generate_series(0, $2::bigint - 1) AS n`, w.n.id, run)
	w.ok(err)
	_, err = w.conn.Exec(ctx, `UPDATE amends.partitions SET frontier = 1 + $2 WHERE namespace_id = $1 AND partition = 0`, w.n.id, run)
	w.ok(err)
	return w
}

func (w *outboxWorld) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// commit commits a decision of the key widget with its next status version.
func (w *outboxWorld) commit(at ledger.Offset, fresh bool) {
	w.Helper()
	o, err := w.n.Observe(context.Background(), 0)
	w.ok(err)
	d := ledger.Decision{Offset: at, Class: ledger.Applied, NewKey: fresh, Sequence: o.Sequence,
		Assertion: ledger.Assertion{Key: ledger.StockKey{Item: "widget", Location: "berlin"}, TxnID: "T", Revision: ledger.Revision(at) + 1,
			Payload: ledger.Payload{State: ledger.Cancelled}},
		Changes: []ledger.Change{{Kind: ledger.TrustStatus, Version: ledger.Version(at) + 1, Present: true, Status: &ledger.Status{}}}}
	w.ok(w.n.Commit(context.Background(), w.owned.Token, &ledger.Batch{Decisions: []ledger.Decision{d}, Expected: ledger.Frontier(at),
		Next: ledger.Frontier(at) + 1, FirstSequence: o.Sequence, NextSequence: o.Sequence + 1}))
}

// explain returns the plan of a search that was executed.
func (w *outboxWorld) explain(from store.RelayPosition) string {
	w.Helper()
	ctx := context.Background()
	_, err := w.conn.Exec(ctx, `SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
		SET enable_mergejoin = off`)
	w.ok(err)
	rows, err := w.conn.Query(ctx, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "+w.n.db.pool.Statement("pending"), w.n.id, 0, int64(from.Source), int64(from.Sequence), int64(1)<<62)
	w.ok(err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.ok(err)
	return strings.Join(plan, "\n")
}

// C31, SC34: an idle relay reads no record without outputs, however many there are, and a search walks over them once.
func TestIdleRelayReadsNoJournal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newOutboxWorld(t, 3*pendingWindow)
	pending := func(from store.RelayPosition) []ledger.Decision {
		t.Helper()
		found, err := w.n.Pending(ctx, 0, from, 100)
		w.ok(err)
		return found
	}
	if first := pending(store.RelayPosition{}); len(first) != 1 || first[0].Offset != 0 {
		t.Fatalf("pending %+v", first)
	}
	w.ok(w.n.Acknowledge(ctx, w.lease, store.Receipt{First: 0, Next: 1}))
	position, err := w.n.RelayPosition(ctx, 0)
	w.ok(err)
	if plan := w.explain(position); !journalUntouched(plan) || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan") {
		t.Errorf("an idle search reads the journal, or sorts:\n%s", plan)
	}
	if found := pending(position); len(found) != 0 {
		t.Fatalf("pending %+v", found)
	}
	at := func(n *Namespace) ledger.Offset {
		server, err := n.db.Server(ctx)
		w.ok(err)
		return n.looked.From(server, 0, 1, position.Source)
	}
	if got := at(w.n); got != ledger.Offset(1+w.run) {
		t.Errorf("the next search begins at %d, the frontier is %d", got, 1+w.run)
	}
	w.commit(ledger.Offset(1+w.run), false)
	if found := pending(position); len(found) != 1 || found[0].Sequence != 1 {
		t.Fatalf("pending %+v", found)
	}
	// A relay that starts again finds it too, and leaves a mark for its receipt.
	again, err := w.n.db.Namespace(ctx, w.n.cfg)
	w.ok(err)
	w.n = again
	if found := pending(position); len(found) != 1 || found[0].Sequence != 1 {
		t.Fatalf("pending %+v", found)
	}
	if got := at(w.n); got < ledger.Offset(w.run-pendingWindow) {
		t.Errorf("the receipt's search begins at %d, its decision is at %d", got, 1+w.run)
	}
	w.ok(w.n.Acknowledge(ctx, w.lease, store.Receipt{First: 1, Next: 2, Offset: 1}))
	position, err = w.n.RelayPosition(ctx, 0)
	w.ok(err)
	if position.Source != ledger.Offset(1+w.run) || position.Sequence != 2 {
		t.Errorf("position %+v", position)
	}
	d, err := w.n.Outbox(ctx, 0, 1)
	w.ok(err)
	if d == nil || d.Offset != ledger.Offset(1+w.run) {
		t.Errorf("the outbox holds %+v", d)
	}
	if found := pending(position); len(found) != 0 {
		t.Errorf("pending %+v", found)
	}
}

// journalUntouched reports whether the scan of the journal was never executed.
func journalUntouched(plan string) bool {
	for line := range strings.Lines(plan) {
		if strings.Contains(line, "on journal") {
			return strings.Contains(line, "never executed")
		}
	}
	return false
}
