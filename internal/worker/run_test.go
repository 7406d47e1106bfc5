package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/memory"
	"amends/internal/wire"
)

// SC01-SC03, SC25: the worked example through the broker, with a stop and a restart between its three stages, on a
// manifest without an output.
func TestSC25WorkedExampleWithRestarts(t *testing.T) {
	s := newStage(t, 2, false)
	for _, stages := range [][]string{example[:3], example[3:4], example[4:]} {
		s.load(stages...)
		r := s.run(s.options(s.store))
		s.drained()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	got, state := outputs(t, s.reader, 0)
	mustBeExample(t, got)
	if state.Owned.Frontier != 5 || state.Owned.Sequence != 11 || state.Owned.Token.Epoch != 3 {
		t.Fatalf("%+v", state.Owned)
	}
}

// SC23, S13: aborted data is never counted and the frontier moves over trailing markers.
func TestSC23TransactionsInTheSource(t *testing.T) {
	s := newStage(t, 1, false)
	s.load(example[0])
	s.transaction(false, example[1], example[1])
	s.transaction(true, example[1])
	s.transaction(false, example[2])
	r := s.run(s.options(s.store))
	s.drained()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	got, state := outputs(t, s.reader, 0)
	if d := cmp.Diff([]string{"0 0 balance 2026-01-01 v1 100", "1 0 status v1 READY", "2 4 balance 2026-01-02 v1 80"}, got); d != "" {
		t.Fatal(d)
	}
	if state.Owned.Frontier != 8 {
		t.Fatalf("frontier %d, want 8: the trailing marker lies at 7", state.Owned.Frontier)
	}
}

func (s *stage) transaction(commit bool, values ...string) {
	s.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(s.opts.Brokers...), kgo.TransactionalID("t-"+s.name), kgo.DefaultProduceTopic(s.name))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	if err := c.BeginTransaction(); err != nil {
		s.t.Fatal(err)
	}
	for _, v := range values {
		a, _, _ := wire.ParseValue([]byte(v))
		if err := c.ProduceSync(s.ctx(), kgo.KeySliceRecord(wire.AppendKey(nil, a.Key), []byte(v))).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := c.EndTransaction(s.ctx(), kgo.TransactionEndTry(commit)); err != nil {
		s.t.Fatal(err)
	}
}

// SC22 without kills: workers come and go while records stream; the end is that of an undisturbed run.
func TestSC22RebalancesWhileRecordsStream(t *testing.T) {
	for _, protocol := range broker.GroupProtocols() {
		t.Run(string(protocol), func(t *testing.T) { rebalances(t, protocol) })
	}
}

// joins starts one more worker and waits until it has claimed its part and committed some of it. It needs records that stream.
func (s *stage) joins(what string) *running {
	s.t.Helper()
	own := &faulty{Store: s.store}
	r := s.run(s.options(own))
	await(s.t, what+" has its part", func() bool { return own.count(func() int { return len(own.commits) }) > 1 })
	return r
}

func rebalances(t *testing.T, protocol broker.GroupProtocol) {
	s := newStage(t, 4, true)
	s.protocol = protocol
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i += 40 {
			select {
			case <-stop:
				return
			default:
				s.load(history(i, 40)...)
				time.Sleep(5 * time.Millisecond)
			}
		}
	})
	first := s.run(s.options(s.store))
	for range 4 {
		second := s.joins("the second worker")
		third := s.joins("the third worker")
		if err := second.stop(); err != nil {
			t.Fatal(err)
		}
		if err := third.stop(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	s.drained()
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	s.undisturbed()
}

// A revoke waits for the commit in flight and lets no other follow; the new owner goes on from it.
func TestRevokeInMidBatchWaitsForTheCommit(t *testing.T) {
	s := newStage(t, 1, true)
	s.load(history(0, 10)...)
	entered, leave := make(chan struct{}), make(chan struct{})
	old := &faulty{Store: s.store.Store}
	old.onCommit = func(n int, _ *ledger.Batch) (bool, error) {
		if n == 1 {
			close(entered)
			<-leave
		}
		return true, nil
	}
	a := s.run(s.options(old))
	<-entered
	s.load(history(10, 10)...)
	a.cancel()              // leaving revokes
	time.Sleep(time.Second) // what stopping the partition takes on a busy machine, and less than the grace
	select {
	case <-a.done:
		t.Fatal("the worker ended while its commit was in flight")
	default:
	}
	close(leave)
	if err := a.wait(); err != nil {
		t.Fatal(err)
	}
	if n := old.count(func() int { return len(old.commits) }); n != 1 {
		t.Fatalf("%d commits, want only the one in flight", n)
	}
	b := s.run(s.options(s.store))
	s.drained()
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	s.undisturbed()
}

// SC39: a commit that hangs is cancelled after the grace, and the worker ends cleanly. How long that takes is bounded by two limits,
// ten seconds together.
// Shows F17.
func TestSC39StopAbandonsAHangingCommit(t *testing.T) {
	s := newStage(t, 1, true)
	s.load(history(0, 10)...)
	hanging := &hangs{faulty: s.store, entered: make(chan struct{})}
	r := s.run(s.options(hanging))
	<-hanging.entered
	began := time.Now()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < StopGrace || StopGrace+closeTimeout > 10*time.Second {
		t.Fatalf("took %v: of 10 s it has %v for work in flight and %v for leaving the group", took, StopGrace, closeTimeout)
	}
}

// hangs is a store whose commits end only with their context, unknown.
type hangs struct {
	*faulty
	entered chan struct{}
	once    sync.Once
}

func (h *hangs) Commit(ctx context.Context, _ store.Token, _ *ledger.Batch) error {
	h.once.Do(func() { close(h.entered) })
	<-ctx.Done()
	return fmt.Errorf("%w: %w", store.ErrCommitUnknown, ctx.Err())
}

// SC19: a worker whose partition was claimed by another ends as fenced and writes nothing more.
func TestSC19FencedWorkerEnds(t *testing.T) {
	s := newStage(t, 1, true)
	s.load(history(0, 10)...)
	r := s.run(s.options(s.store))
	s.drained()
	if _, err := s.store.Store.Claim(s.ctx(), 0); err != nil {
		t.Fatal(err)
	}
	s.load(history(10, 10)...)
	if err := r.wait(); !errors.Is(err, store.ErrFence) {
		t.Fatalf("error %v, want a fence", err)
	}
	if at := s.frontier(0); at != 10 {
		t.Fatalf("frontier %d, want 10", at)
	}
}

// A claim between the assignment and the positions fences the worker before it reads anything.
func TestFencedBeforeItsPositions(t *testing.T) {
	s := newStage(t, 1, true)
	s.store.onObserve = func(n int) error {
		if n == 1 {
			_, _ = s.store.Store.Claim(context.Background(), 0)
		}
		return nil
	}
	s.load(history(0, 10)...)
	r := s.run(s.options(s.store))
	if err := r.wait(); !errors.Is(err, store.ErrFence) {
		t.Fatalf("error %v, want a fence", err)
	}
	if n := s.store.count(func() int { return len(s.store.commits) }); n != 0 {
		t.Fatalf("%d commits", n)
	}
}

// S12: a database that is away when partitions are assigned is waited for, and the worker says so.
func TestDatabaseAwayAtTheClaim(t *testing.T) {
	s := newStage(t, 2, true)
	s.load(history(0, 30)...)
	var mu sync.Mutex
	gone := true
	s.store.onClaim = func(int) error {
		mu.Lock()
		defer mu.Unlock()
		if gone {
			return fmt.Errorf("dial: %w", store.ErrUnavailable)
		}
		return nil
	}
	var told []bool
	o := s.options(s.store)
	o.Ready = func(ready bool, _ string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, ready)
	}
	r := s.run(o)
	await(t, "two rounds of claims", func() bool { return s.store.count(func() int { return s.store.claims }) >= 2*MaxAttempts*2 })
	mu.Lock()
	if len(told) == 0 || told[len(told)-1] {
		t.Errorf("readiness while the database is away: %v", told)
	}
	gone = false
	mu.Unlock()
	s.drained()
	mu.Lock()
	if !told[len(told)-1] {
		t.Errorf("readiness at the end: %v", told)
	}
	mu.Unlock()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	s.undisturbed()
}

// A claim whose reply was lost is made again under the same assignment.
func TestS12UnknownClaim(t *testing.T) {
	s := newStage(t, 1, true)
	s.load(history(0, 10)...)
	s.store.onClaim = func(n int) error {
		if n == 1 {
			_, _ = s.store.Store.Claim(context.Background(), 0)
			return errLost
		}
		return nil
	}
	r := s.run(s.options(s.store))
	s.drained()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if _, state := outputs(t, s.reader, 0); state.Owned.Token.Epoch != 2 {
		t.Fatalf("epoch %d, want 2", state.Owned.Token.Epoch)
	}
}

func TestClaimThatFailsForGoodEndsTheWorker(t *testing.T) {
	s := newStage(t, 1, true)
	s.store.onClaim = func(int) error { return fmt.Errorf("claim: %w", store.ErrExhausted) }
	if err := s.run(s.options(s.store)).wait(); !errors.Is(err, store.ErrExhausted) {
		t.Fatalf("error %v", err)
	}
	s.store.onClaim = func(int) error { return errors.New("permission denied") }
	if err := s.run(s.options(s.store)).wait(); !errors.Is(err, ErrRetries) {
		t.Fatalf("error %v", err)
	}
}

// S12: after a promotion the running worker claims again, seeks, and goes on; nothing is lost or doubled.
func TestPromotionWhileRunning(t *testing.T) {
	s := newStage(t, 2, true)
	db := memory.New()
	ns, err := db.Init(s.ctx(), s.cfg, s.name)
	if err != nil {
		t.Fatal(err)
	}
	s.store, s.reader = &faulty{Store: ns}, ns
	s.store.onCommit = func(n int, _ *ledger.Batch) (bool, error) {
		switch n {
		case 3:
			db.Promote()
		case 6:
			return true, errLost
		case 8:
			return false, errLost
		}
		return true, nil
	}
	r := s.run(s.options(s.store))
	for i := range 10 {
		s.load(history(i*20, 20)...)
		s.drained()
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if _, state := outputs(t, s.reader, 0); state.Owned.Token.Epoch < 2 {
		t.Fatalf("epoch %d", state.Owned.Token.Epoch)
	}
	s.undisturbed()
}

// SC24, I23: a recreated topic is noticed while running and before the start, and none of its records has an effect.
func TestSC24RecreatedTopic(t *testing.T) {
	s := newStage(t, 1, true)
	s.load(history(0, 10)...)
	r := s.run(s.options(s.store))
	s.drained()
	if err := s.cluster.DeleteTopic("src"); err != nil {
		t.Fatal(err)
	}
	was := s.topic
	again, err := s.admin.CreateTopic(s.ctx(), "src", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.topic = again
	s.load(history(0, 50)...)
	s.topic = was
	var identity *broker.IdentityError
	if err := r.wait(); !errors.As(err, &identity) || identity.Want != was.Incarnation {
		t.Fatalf("error %v, want an identity error", err)
	}
	if at := s.frontier(0); at != 10 {
		t.Fatalf("frontier %d, want 10", at)
	}
	if err := s.run(s.options(s.store)).wait(); !errors.As(err, &identity) || identity.Found != again.Incarnation {
		t.Fatalf("at the start: %v", err)
	}
	if n := s.store.count(func() int { return s.store.claims }); n != 1 {
		t.Fatalf("%d claims: a wrong topic was claimed", n)
	}
}

// SC24: a deleted topic, added partitions, deleted records and finite retention each end the running worker.
// Shows F13.
func TestSC24TopicChangesWhileRunning(t *testing.T) {
	for name, change := range map[string]struct {
		what string
		do   func(*stage) error
	}{
		"deleted":         {"incarnation", func(s *stage) error { return s.cluster.DeleteTopic("src") }},
		"records deleted": {"log start of partition 0", func(s *stage) error { return s.cluster.DeleteRecords("src", 0, 3) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 1, true)
			s.load(history(0, 10)...)
			r := s.run(s.options(s.store))
			s.drained()
			if err := change.do(s); err != nil {
				t.Fatal(err)
			}
			var identity *broker.IdentityError
			if err := r.wait(); !errors.As(err, &identity) || identity.What != change.what {
				t.Fatalf("error %v, want %s", err, change.what)
			}
		})
	}
}

// A frontier beyond the log's end is an integrity stop: the log lost what was decided.
func TestFrontierBeyondTheEndStops(t *testing.T) {
	s := newStage(t, 1, true)
	owned, err := s.store.Store.Claim(s.ctx(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.Store.Commit(s.ctx(), owned.Token, &ledger.Batch{Next: 7}); err != nil {
		t.Fatal(err)
	}
	var outside *broker.RangeError
	if err := s.run(s.options(s.store)).wait(); !errors.As(err, &outside) || outside.Position != 7 {
		t.Fatalf("error %v, want a range error", err)
	}
}

// Positions may be asked for again, as after a session that ended before it fetched: the claim still stands.
func TestPositionsAskedAgain(t *testing.T) {
	s := newStage(t, 1, true)
	s.load(history(0, 10)...)
	o := s.options(s.store)
	join := o.Join
	o.Join = func(m broker.Member) (Source, error) { return join(twice{m}) }
	r := s.run(o)
	s.drained()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if _, state := outputs(t, s.reader, 0); state.Owned.Token.Epoch != 1 {
		t.Fatalf("epoch %d, want 1", state.Owned.Token.Epoch)
	}
	s.undisturbed()
}

// twice asks a member for its positions twice.
type twice struct{ broker.Member }

func (m twice) Positions(ctx context.Context, ps []ledger.Partition) (map[ledger.Partition]ledger.Frontier, error) {
	if _, err := m.Member.Positions(ctx, ps); err != nil {
		return nil, err
	}
	return m.Member.Positions(ctx, ps)
}

// The broker away: waited for, not ready, no exit; stopping still works.
func TestBrokerAwayIsWaitedFor(t *testing.T) {
	s := newStage(t, 1, true)
	o := s.options(s.store)
	dead, err := broker.Open(broker.Options{Brokers: []string{"127.0.0.1:1"}, RequestTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	var mu sync.Mutex
	last, reason := true, ""
	o.Topics = dead
	o.Ready = func(ready bool, why string) {
		mu.Lock()
		defer mu.Unlock()
		last, reason = ready, why
	}
	r := s.run(o)
	await(t, "not ready", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !last && len(reason) > len("group: joining")+10
	})
	select {
	case <-r.done:
		t.Fatalf("ended: %v", r.err)
	case <-time.After(500 * time.Millisecond):
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// Partitions progress independently: one whose commits hang does not hold up the other, and is held when it has too much.
func TestPartitionsProgressIndependently(t *testing.T) {
	s := newStage(t, 2, true)
	leave := make(chan struct{})
	s.store.onCommit = func(_ int, b *ledger.Batch) (bool, error) {
		if b.Partition == 0 {
			<-leave
		}
		return true, nil
	}
	r := s.run(s.options(s.store))
	for i := range 20 {
		s.load(history(i*30, 30)...)
	}
	ends, err := s.admin.Ends(s.ctx(), s.name)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "partition 1 reaches its end", func() bool { return s.frontier(1) == ledger.Frontier(ends[1]) })
	if s.frontier(0) != 0 {
		t.Fatal("partition 0 was not held up")
	}
	close(leave)
	s.drained()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	s.undisturbed()
}
