package worker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/memory"
)

// assignment is a lifecycle over a memory store whose partitions a test steps.
type assignment struct {
	*Lifecycle
	f       *faulty
	started map[ledger.Partition]*Partition
	all     []ledger.Partition
	ended   error
	now     atomic.Int64 // in nanoseconds
}

func newAssignment(t *testing.T, partitions int32, atOnce int) *assignment {
	t.Helper()
	cfg, err := manifest.New(manifest.Config{Namespace: "demo", SourceIncarnation: incarnation, LedgerOrigin: day("2026-01-01"), Partitions: partitions, OpenKeys: &manifest.Terms{}})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := memory.New().Init(t.Context(), cfg, "src")
	if err != nil {
		t.Fatal(err)
	}
	a := &assignment{f: &faulty{Store: ns}, started: map[ledger.Partition]*Partition{}}
	for p := range ledger.Partition(partitions) {
		a.all = append(a.all, p)
	}
	a.Lifecycle = NewLifecycle(t.Context(), &Options{Store: a.f, Manifest: &manifest.Manifest{Config: cfg, SourceTopic: "src"}}, &Drive{
		Start: func(p *Partition) { a.started[p.ID()] = p }, Stop: func([]*Partition) {}, Fail: func(err error) { a.ended = err },
		Hold: func(ledger.Partition, bool) {}, Wake: func() {}, Clock: func() time.Time { return time.Unix(0, a.now.Load()) },
		Pause: func(context.Context, time.Duration) error { return nil }, AtOnce: atOnce})
	a.look = func(context.Context) error { return nil }
	return a
}

// S12: 1,024 partitions at 20 ms a claim fit into one assignment's budget.
func TestS12ManyPartitionsAreClaimedWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions, each = 1_024, 20 * time.Millisecond
		a := newAssignment(t, partitions, claimsAtOnce)
		var mu sync.Mutex
		now, most := 0, 0
		slow := func(int) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(each)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		}
		a.f.onClaim, a.f.onObserve = slow, slow
		began := time.Now()
		a.Assigned(t.Context(), a.all)
		at, err := a.Positions(t.Context(), a.all)
		if took := time.Since(began); err != nil || took > RetryBudget/2 {
			t.Fatalf("%v after %v", err, took)
		}
		if len(at) != partitions || len(a.started) != partitions || a.f.claims != partitions || a.f.observes != partitions {
			t.Errorf("%d positions, %d partitions, %d claims, %d rows read", len(at), len(a.started), a.f.claims, a.f.observes)
		}
		if most != claimsAtOnce || now != 0 {
			t.Errorf("%d calls at the same time, %d when it returned", most, now)
		}
	})
}

// S12: what the budget of an assignment had no time for is claimed later by the partition itself, and not lost; nothing is
// committed for it before.
func TestS12LateClaimIsMadeByThePartition(t *testing.T) {
	a := newAssignment(t, 4, 0)
	a.f.onClaim = func(int) error {
		a.now.Add(int64(9 * time.Second)) // the third ends past 20 s
		return nil
	}
	a.Assigned(t.Context(), a.all)
	if a.f.claims != 3 {
		t.Fatalf("%d claims", a.f.claims)
	}
	at, err := a.Positions(t.Context(), a.all)
	if err != nil || len(at) != 4 || a.ended != nil {
		t.Fatalf("%v, %v; ended with %v", at, err, a.ended)
	}
	late := a.started[3]
	values := []string{receipt("T-1", "x", "2026-01-05", 3)}
	if p, _ := a.cfg.Route(ledger.StockKey{Item: "x", Location: "berlin"}); p != 3 {
		values[0] = "{" // rejected, wherever it lies
	}
	if err := late.Offer(broker.Fetched{Partition: 3, Records: []ledger.SourceRecord{{Partition: 3, Value: []byte(values[0])}}, Next: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Step(t.Context()); err != nil || a.f.claims != 4 || len(a.f.commits) != 0 {
		t.Fatalf("%v after %d claims, %d commits", err, a.f.claims, len(a.f.commits))
	}
	sought := map[ledger.Partition]ledger.Frontier{}
	if err := a.Dispatch(nil, func(p ledger.Partition, at ledger.Frontier) { sought[p] = at }); err != nil || len(sought) != 1 {
		t.Fatalf("%v, sought %v", err, sought)
	}
	if err := late.Offer(broker.Fetched{Partition: 3, Records: []ledger.SourceRecord{{Partition: 3, Value: []byte(values[0])}}, Next: 1}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := late.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.f.commits) != 1 || late.Frontier() != 1 {
		t.Errorf("%d commits, frontier %d", len(a.f.commits), late.Frontier())
	}
}

// S12: an assignment that is told again, as after a session that ended, does not take a partition that waits for its claim
// for one that lost it.
func TestS12LateClaimSurvivesAnotherPosition(t *testing.T) {
	a := newAssignment(t, 2, 0)
	a.f.onClaim = func(int) error {
		a.now.Add(int64(RetryBudget))
		return nil
	}
	a.Assigned(t.Context(), a.all)
	for range 2 {
		if _, err := a.Positions(t.Context(), a.all); err != nil || a.ended != nil {
			t.Fatalf("%v; ended with %v", err, a.ended)
		}
	}
	if _, err := a.started[1].Step(t.Context()); err != nil || a.f.claims != 2 {
		t.Fatalf("%v after %d claims", err, a.f.claims)
	}
	if got, err := a.f.Observe(t.Context(), 1); err != nil || got.Token != a.started[1].token || got.Token == (store.Token{}) {
		t.Errorf("installed %+v, held %+v, %v", got.Token, a.started[1].token, err)
	}
}

// S12: a claim that is refused ends the role as before; only the budget makes one late.
func TestS12RefusedClaimIsNotLate(t *testing.T) {
	a := newAssignment(t, 1, 0)
	a.f.onClaim = func(int) error { return errors.New("permission denied") }
	a.Assigned(t.Context(), a.all)
	if _, err := a.Positions(t.Context(), a.all); !errors.Is(err, ErrRetries) || !errors.Is(a.ended, ErrRetries) || a.f.claims != MaxAttempts {
		t.Errorf("%v, ended with %v after %d claims", err, a.ended, a.f.claims)
	}
}

// S12: a worker whose partition was given away while it waited for the database, and that got none instead, waits for nothing.
func TestS12WorkerWithoutPartitionsIsReady(t *testing.T) {
	a := newAssignment(t, 1, 0)
	a.f.onCommit = func(int, *ledger.Batch) (bool, error) { return false, store.ErrUnavailable }
	a.Assigned(t.Context(), a.all)
	if _, err := a.Positions(t.Context(), a.all); err != nil {
		t.Fatal(err)
	}
	part := a.started[0]
	if err := part.Offer(broker.Fetched{Records: []ledger.SourceRecord{{Value: []byte("{")}}, Next: 1}); err != nil {
		t.Fatal(err)
	}
	for range 3 { // fetch, decide, commit
		if _, err := part.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if why := a.ready.why(); why == "" {
		t.Fatal("ready while the database is away")
	}
	a.Revoked(t.Context(), a.all)
	a.Assigned(t.Context(), nil)
	if why := a.ready.why(); why != "" {
		t.Errorf("not ready because of %q", why)
	}
}

// A partition's wait is its own: that another one goes on does not end it, and giving it away does (S12).
func TestS12WaitsArePartitionsOwn(t *testing.T) {
	a := newAssignment(t, 2, 0)
	a.f.onCommit = func(_ int, b *ledger.Batch) (bool, error) {
		if b.Partition == 0 {
			return false, store.ErrUnavailable
		}
		return true, nil
	}
	a.Assigned(t.Context(), a.all)
	if _, err := a.Positions(t.Context(), a.all); err != nil {
		t.Fatal(err)
	}
	for _, part := range a.started {
		if err := part.Offer(broker.Fetched{Partition: part.id, Records: []ledger.SourceRecord{{Partition: part.id, Value: []byte("{")}}, Next: 1}); err != nil {
			t.Fatal(err)
		}
		for range 3 { // fetch, decide, commit
			if _, err := part.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.started[1].waits = 1 // as after a wait of its own
	a.started[1].done()
	if why := a.ready.why(); !strings.HasPrefix(why, "database: ") {
		t.Fatalf("waits for %q while partition 0 waits for the database", why)
	}
	a.Revoked(t.Context(), a.all[:1])
	if why := a.ready.why(); why != "" {
		t.Errorf("not ready because of %q, which no partition waits for", why)
	}
}

// I22: what partitions have fetched and not decided is bounded for all of them together, however many a topic has.
// Shows I22.
func TestI22InboxesOfManyPartitions(t *testing.T) {
	for partitions, want := range map[int32]int{1: 16, 16: 16, 64: 4, 1_024: 1} { // MiB before one of so many is held
		held := false
		in := newInbox(0, partitions, func(h bool) { held = h })
		const each = 64 << 10
		fetched := 0
		for at := ledger.Offset(0); !held && fetched <= 32; at++ {
			f := broker.Fetched{From: ledger.Frontier(at), Next: ledger.Frontier(at) + 1}
			f.Records = []ledger.SourceRecord{{Offset: at, Value: make([]byte, each-recordBytes)}}
			if err := in.offer(f); err != nil {
				t.Fatal(err)
			}
			fetched = int(at+1) * each >> 20
		}
		if fetched != want {
			t.Errorf("of %d partitions one is held with %d MiB, want %d", partitions, fetched, want)
		}
	}
}
