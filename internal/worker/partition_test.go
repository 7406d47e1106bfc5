package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/memory"
	"amends/internal/wire"
)

// The servers of a test binary end with it, and so do the goroutines that watch over them.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("amends/internal/embedded/process.supervise"))
}

const incarnation = "kafka:00112233445566778899aabbccddeeff"

// bench drives one partition step by step over a memory store, without goroutines or a broker.
type bench struct {
	t     *testing.T
	db    *memory.DB
	store *faulty
	part  *Partition
	held  []bool
	now   time.Time
	look  error
	log   strings.Builder
	end   ledger.Frontier
}

func newBench(t *testing.T, cfg *manifest.Config, cache int64) *bench {
	t.Helper()
	db := memory.New()
	ns, err := db.Init(context.Background(), cfg, "src")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, db: db, store: &faulty{Store: ns}, now: time.Unix(0, 0)}
	b.take(cfg, cache)
	return b
}

// take claims partition 0 afresh, as a worker does.
func (b *bench) take(cfg *manifest.Config, cache int64) {
	b.t.Helper()
	log := slog.New(slog.NewTextHandler(&b.log, nil))
	s := &shared{store: b.store, cfg: cfg, log: log, clock: func() time.Time { return b.now }, cache: cache, wakeUp: func() {},
		ready: newReadiness(log, nil), look: func(context.Context) error { return b.look }}
	owned, err := b.store.Claim(context.Background(), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	b.part = newPartition(s, 0, owned, func(held bool) { b.held = append(b.held, held) })
	b.end = owned.Frontier
}

func worked(t *testing.T) *manifest.Config {
	t.Helper()
	cfg, err := manifest.Default("demo", incarnation)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// open admits every key on one partition.
func open(t *testing.T) *manifest.Config {
	t.Helper()
	cfg, err := manifest.New(manifest.Config{Namespace: "demo", SourceIncarnation: incarnation, LedgerOrigin: day("2026-01-01"), Partitions: 1, OpenKeys: &manifest.Terms{}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func day(s string) ledger.Day {
	d, ok := ledger.ParseDay(s)
	if !ok {
		panic(s)
	}
	return d
}

// record is a source record at an offset; the broker key is that of the assertion.
func record(at ledger.Offset, value string) ledger.SourceRecord {
	r := ledger.SourceRecord{Partition: 0, Offset: at, Value: []byte(value)}
	if a, rejection, _ := wire.ParseValue(r.Value); rejection == 0 {
		r.Key = wire.AppendKey(nil, a.Key)
	}
	return r
}

func receipt(txn, item, on string, quantity int) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":%q,"revision":1,"state":"active","item":%q,"location":"berlin","day":%q,"kind":"receipt","quantity":%d}`, txn, item, on, quantity)
}

// example is the worked example of the contract.
var example = []string{
	`{"schema":1,"txn_id":"T-1","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":100}`,
	`{"schema":1,"txn_id":"T-2","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-02","kind":"issue","quantity":20}`,
	`{"schema":1,"txn_id":"T-3","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-03","kind":"issue","quantity":30}`,
	`{"schema":1,"txn_id":"T-1","revision":2,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":70}`,
	`{"schema":1,"txn_id":"T-3","revision":2,"state":"cancelled","item":"widget","location":"berlin"}`,
}

// exampleOutputs are its eleven outputs: sequence, cause offset, output, version, payload.
var exampleOutputs = []string{
	"0 0 balance 2026-01-01 v1 100",
	"1 0 status v1 READY",
	"2 1 balance 2026-01-02 v1 80",
	"3 2 balance 2026-01-03 v1 50",
	"4 2 alert 2026-01-03 v1 80->50",
	"5 3 balance 2026-01-01 v2 70",
	"6 3 balance 2026-01-02 v2 50",
	"7 3 alert 2026-01-02 v1 70->50",
	"8 3 balance 2026-01-03 v2 20",
	"9 3 alert 2026-01-03 v2 withdrawn",
	"10 4 balance 2026-01-03 v3 withdrawn",
}

func mustBeExample(t testing.TB, got []string) {
	t.Helper()
	if d := cmp.Diff(exampleOutputs, got); d != "" {
		t.Fatalf("not the outputs of the worked example (-want +got):\n%s", d)
	}
}

// offer hands the partition records as one return of the client, seen up to next.
func (b *bench) offer(next ledger.Frontier, records ...ledger.SourceRecord) {
	b.t.Helper()
	if err := b.part.Offer(broker.Fetched{Partition: 0, From: b.end, Next: next, Records: records}); err != nil {
		b.t.Fatal(err)
	}
	b.end = next
}

func (b *bench) offerExample() {
	var records []ledger.SourceRecord
	for i, v := range example {
		records = append(records, record(ledger.Offset(i), v))
	}
	b.offer(5, records...)
}

// settle steps until the partition has nothing to do, adding its waits to the clock.
func (b *bench) settle() error {
	b.t.Helper()
	for range 1_000 {
		progress, err := b.part.Step(context.Background())
		if err != nil || progress.Idle || progress.Done {
			return err
		}
		b.now = b.now.Add(progress.Wait)
	}
	b.t.Fatal("no end after 1,000 steps")
	return nil
}

type storeReader interface {
	Snapshot(context.Context, func(store.Snapshot) error) error
}

// outputs lists a partition's outputs from the journal.
func outputs(t *testing.T, ns storeReader, p ledger.Partition) (out []string, state store.PartitionState) {
	t.Helper()
	err := ns.Snapshot(context.Background(), func(s store.Snapshot) error {
		states, err := s.Partitions(context.Background())
		if err != nil {
			return err
		}
		state = states[p]
		return s.Journal(context.Background(), p, func(d *ledger.Decision) error {
			for i, c := range d.Changes {
				out = append(out, fmt.Sprintf("%d %d %s", int64(d.Sequence)+int64(i), d.Offset, change(&c)))
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, state
}

func change(c *ledger.Change) string {
	id := c.Kind.String()
	if c.Day != 0 {
		id += " " + c.Day.String()
	}
	id += fmt.Sprintf(" v%d ", c.Version)
	switch {
	case !c.Present:
		return id + "withdrawn"
	case c.Kind == ledger.Alert:
		return id + fmt.Sprintf("%d->%d", c.Previous, c.Close)
	case c.Kind == ledger.TrustStatus && c.Status.Blocked:
		return id + "BLOCKED"
	case c.Kind == ledger.TrustStatus:
		return id + "READY"
	}
	return id + fmt.Sprint(c.Close)
}

// mustEndAsExample compares the journal with the worked example, whatever happened on the way.
func (b *bench) mustEndAsExample() {
	b.t.Helper()
	got, state := outputs(b.t, b.store.Store.(storeReader), 0)
	mustBeExample(b.t, got)
	if state.Owned.Frontier != 5 || state.Owned.Sequence != 11 {
		b.t.Fatalf("frontier %d sequence %d, want 5 and 11", state.Owned.Frontier, state.Owned.Sequence)
	}
	if b.part.Frontier() != 5 {
		b.t.Fatalf("the worker stands at %d", b.part.Frontier())
	}
	if n := state.Measurements.Total.Work.Records; n != 5 {
		b.t.Fatalf("%d records measured, want 5", n)
	}
}

// SC01-SC03.
func TestSC03WorkedExampleInOneBatch(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.offerExample()
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	b.mustEndAsExample()
	if len(b.store.commits) != 1 || len(b.store.loads) != 1 {
		t.Fatalf("%d commits, %d loads; want 1 each", len(b.store.commits), len(b.store.loads))
	}
	for _, want := range []string{"namespace=demo", "partition=0", "first_offset=0", "next_offset=5", "epoch=1", "storage_call_elapsed_ns=", "outcome=acknowledged"} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("the attempt line lacks %s: %s", want, b.log.String())
		}
	}
}

// No commit trusts an old look: while the broker cannot be asked nothing is sent; another topic ends the role.
func TestCommitNeedsAFreshLook(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.look = fmt.Errorf("look: %w", broker.ErrUnavailable)
	b.offerExample()
	for range 20 {
		progress, err := b.part.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(progress.Wait)
	}
	if len(b.store.commits) != 0 {
		t.Fatal("committed without a look")
	}
	b.look = &broker.IdentityError{Topic: "src", What: "incarnation"}
	var identity *broker.IdentityError
	if err := b.settle(); !errors.As(err, &identity) || len(b.store.commits) != 0 {
		t.Fatalf("error %v, %d commits", err, len(b.store.commits))
	}
}

// A stopped partition issues no commit, not even the retry of one that turned out not to be written.
// Shows I17.
func TestStoppedPartitionIssuesNoCommit(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.store.onCommit = func(int, *ledger.Batch) (bool, error) {
		b.part.Stop()
		return false, errLost
	}
	b.offerExample()
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	if len(b.store.commits) != 1 || b.store.observes != 1 {
		t.Fatalf("%d commits, %d reads; want 1 and 1", len(b.store.commits), b.store.observes)
	}
	b2 := newBench(t, worked(t), 1<<20)
	b2.offerExample()
	b2.part.Stop()
	if progress, err := b2.part.Step(context.Background()); err != nil || !progress.Done || len(b2.store.commits) != 0 {
		t.Fatalf("%+v %v", progress, err)
	}
}

// S13: gaps below a record or marker are passed, a bare move leaves the measurements alone.
func TestS13GapsAndMarkers(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.offer(4, record(0, example[0]), record(3, example[1])) // 1 and 2 were aborted
	b.offer(9)                                               // markers only
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	b.offer(12)
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	got, state := outputs(t, b.store.Store.(storeReader), 0)
	if d := cmp.Diff([]string{"0 0 balance 2026-01-01 v1 100", "1 0 status v1 READY", "2 3 balance 2026-01-02 v1 80"}, got); d != "" {
		t.Fatal(d)
	}
	if state.Owned.Frontier != 12 || state.Owned.Sequence != 3 {
		t.Fatalf("frontier %d, sequence %d", state.Owned.Frontier, state.Owned.Sequence)
	}
	if m := state.Measurements; m.Commits != 1 || m.Total.Work.Records != 2 {
		t.Fatalf("measured %+v", m)
	}
	if last := b.store.commits[len(b.store.commits)-1]; len(last.Decisions) != 0 || last.Expected != 9 || last.Next != 12 {
		t.Fatalf("bare move %+v", last)
	}
}

func TestInboxRefusesAGapInTheClientsAccount(t *testing.T) {
	in := newInbox(3, 1, func(bool) {})
	if err := in.offer(broker.Fetched{From: 4, Next: 5}); !errors.Is(err, ErrIntegrity) {
		t.Fatalf("error %v", err)
	}
}

// Batches are cut at their bounds, and a partition with too much fetched is held until half of it is decided.
func TestInboxCutsAndHolds(t *testing.T) {
	var held []bool
	in := newInbox(0, 1, func(h bool) { held = append(held, h) })
	big := make([]byte, 4096)
	at := ledger.Offset(0)
	for range 4 {
		f := broker.Fetched{From: ledger.Frontier(at)}
		for range 1_500 {
			f.Records = append(f.Records, ledger.SourceRecord{Offset: at, Value: big})
			at++
		}
		f.Next = ledger.Frontier(at) + 1 // a marker behind
		at++
		if err := in.offer(f); err != nil {
			t.Fatal(err)
		}
	}
	if !cmp.Equal(held, []bool{true}) {
		t.Fatalf("held %v", held)
	}
	want, total := ledger.Frontier(0), 0
	for {
		records, next, ok := in.take()
		if !ok {
			break
		}
		if len(records) > BatchRecords || size(records) > BatchBytes+4096+recordBytes || next <= want {
			t.Fatalf("%d records, %d bytes, next %d", len(records), size(records), next)
		}
		if next < ledger.Frontier(records[len(records)-1].Offset)+1 {
			t.Fatalf("next %d before its records", next)
		}
		want, total = next, total+len(records)
	}
	if total != 6_000 || want != ledger.Frontier(at) || !cmp.Equal(held, []bool{true, false}) || in.bytes != 0 {
		t.Fatalf("%d records, next %d, held %v, %d bytes left", total, want, held, in.bytes)
	}
}

// States under a limit far too small decide the same bytes as states under none (I9), and load keys again and again.
func TestEvictionChangesNoByte(t *testing.T) {
	cfg := open(t)
	run := func(cache int64) ([]string, *bench) {
		b := newBench(t, cfg, cache)
		at := ledger.Offset(0)
		for i := range 60 {
			var records []ledger.SourceRecord
			for j := range 5 {
				item := fmt.Sprintf("item-%d", (i*3+j*7)%40)
				on := ledger.Day(int(day("2026-01-01")) + (i*5+j)%20).String()
				records = append(records, record(at, receipt(fmt.Sprintf("T-%d-%d", i, j), item, on, i+j+1)))
				at++
			}
			b.offer(ledger.Frontier(at), records...)
			if err := b.settle(); err != nil {
				t.Fatal(err)
			}
		}
		got, _ := outputs(t, b.store.Store.(storeReader), 0)
		return got, b
	}
	small, evicting := run(1)
	large, caching := run(1 << 30)
	if d := cmp.Diff(large, small); d != "" {
		t.Fatal(d)
	}
	if len(caching.store.loads) > 40 || len(evicting.store.loads) <= len(caching.store.loads) {
		t.Fatalf("%d loads evicting, %d caching", len(evicting.store.loads), len(caching.store.loads))
	}
}

// A decision that ends a batch early leaves the rest of what was taken to the next commit.
func TestManyOutputsEndABatchEarly(t *testing.T) {
	cfg := open(t)
	b := newBench(t, cfg, 1<<30)
	var records []ledger.SourceRecord
	at := ledger.Offset(0)
	days := 1_500
	for i := range days {
		on := ledger.Day(int(day("2026-01-01")) + i).String()
		records = append(records, record(at, receipt(fmt.Sprintf("T-%d", i), "a", on, 1)))
		at++
	}
	for i := range 100 { // each changes every close
		records = append(records, record(at, receipt(fmt.Sprintf("U-%d", i), "a", "2026-01-01", 1)))
		at++
	}
	b.offer(ledger.Frontier(at)+3, records...)
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	if len(b.store.commits) < 3 {
		t.Fatalf("%d commits for %d outputs", len(b.store.commits), days*101)
	}
	next, sequence := ledger.Frontier(0), ledger.Sequence(0)
	for _, c := range b.store.commits {
		if c.Expected != next || c.FirstSequence != sequence {
			t.Fatalf("commit from %d/%d after %d/%d", c.Expected, c.FirstSequence, next, sequence)
		}
		next, sequence = c.Next, c.NextSequence
	}
	if next != ledger.Frontier(at)+3 || sequence != ledger.Sequence(days*101+1) {
		t.Fatalf("ended at %d with %d outputs", next, sequence)
	}
}

// Snapshots are written once a key has enough rows, and a restart from them goes on with the same bytes.
func TestSnapshotsAreSavedAndUsed(t *testing.T) {
	cfg := open(t)
	b := newBench(t, cfg, 1<<30)
	at := ledger.Offset(0)
	load := func(n int) {
		var records []ledger.SourceRecord
		for range n {
			records = append(records, record(at, receipt(fmt.Sprintf("T-%d", at), "a", "2026-01-05", 1)))
			at++
		}
		b.offer(ledger.Frontier(at), records...)
		if err := b.settle(); err != nil {
			t.Fatal(err)
		}
	}
	load(SnapshotRows + 10)
	if b.store.saves != 1 {
		t.Fatalf("%d saves", b.store.saves)
	}
	b.take(cfg, 1<<30)
	load(3)
	got, _ := outputs(t, b.store.Store.(storeReader), 0)
	if want := fmt.Sprintf("%d %d balance 2026-01-05 v%d %d", at, at-1, at, at); got[len(got)-1] != want {
		t.Fatalf("last output %q, want %q", got[len(got)-1], want)
	}
}

// SC43, S8: exhaustion is an error that changes nothing.
func TestSC43ExhaustionStops(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.part.at.Sequence = ledger.MaxCounter
	b.offerExample()
	if err := b.settle(); !errors.Is(err, store.ErrExhausted) {
		t.Fatalf("error %v", err)
	}
	if got, _ := outputs(t, b.store.Store.(storeReader), 0); len(got) != 0 {
		t.Fatal(got)
	}
}

// A rejected record is quarantined with its bytes and stops nothing.
func TestRejectedRecordsDoNotStop(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	bad := ledger.SourceRecord{Offset: 1, Key: []byte("k"), Value: []byte("{")}
	b.offer(3, record(0, example[0]), bad, record(2, example[1]))
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	c := b.store.commits[0]
	if len(c.Decisions) != 3 || c.Decisions[1].Rejection != ledger.Malformed || string(c.Decisions[1].Evidence.Value) != "{" || len(c.Decisions[2].Changes) != 1 {
		t.Fatalf("%+v", c.Decisions)
	}
}
