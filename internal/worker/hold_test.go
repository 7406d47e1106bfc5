package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/store"
)

// holding is a member of the group that tells when a partition is held.
type holding struct {
	Source
	held chan struct{}
}

func (h *holding) Hold(p ledger.Partition, held bool) {
	h.Source.Hold(p, held)
	if held {
		select {
		case h.held <- struct{}{}:
		default:
		}
	}
}

// SC22: a partition that was held, because more was fetched than could be decided, and that a rebalance takes and gives back is
// fetched again. The client keeps a hold beyond the assignment.
func TestSC22HeldPartitionIsFetchedAgainAfterARebalance(t *testing.T) {
	s := newStage(t, 1, true)
	var away atomic.Bool
	away.Store(true)
	s.store.onCommit = func(int, *ledger.Batch) (bool, error) {
		if away.Load() {
			return false, store.ErrUnavailable
		}
		return true, nil
	}
	values := make([]string, (inboxBytes+BatchBytes)/50_000+100)
	for i := range values {
		values[i] = strings.Repeat("x", 50_000)
	}
	s.load(values...)
	o := s.options(s.store)
	join, held := o.Join, make(chan struct{}, 1)
	o.Join = func(m broker.Member) (Source, error) {
		group, err := join(m)
		return &holding{group, held}, err
	}
	s.run(o)
	select {
	case <-held:
	case <-time.After(patience):
		t.Fatal("nothing was held")
	}
	claims := func() int { return s.store.count(func() int { return s.store.claims }) }
	other := s.run(s.options(s.store))
	await(t, "a rebalance", func() bool { return claims() > 1 })
	if err := other.stop(); err != nil {
		t.Fatal(err)
	}
	await(t, "another one", func() bool { return claims() > 2 })
	away.Store(false)
	s.drained()
}

// S12: a commit whose outcome cannot be read keeps the pauses between attempts although its partition was told to stop.
func TestS12ResolvingPausesAfterAStopToo(t *testing.T) {
	s := newStage(t, 1, true)
	sent := make(chan struct{})
	s.store.onCommit = func(int, *ledger.Batch) (bool, error) {
		close(sent)
		return false, errLost
	}
	s.store.onObserve = func(int) error {
		select {
		case <-sent:
			return store.ErrUnavailable
		default:
			return nil
		}
	}
	o := s.options(s.store)
	r := newRunner(s.ctx(), &o)
	r.join(&empty{polled: make(chan struct{})})
	r.life.Assigned(t.Context(), []ledger.Partition{0})
	if _, err := r.life.Positions(t.Context(), []ledger.Partition{0}); err != nil {
		t.Fatal(err)
	}
	part := r.life.running[0]
	if err := part.Offer(broker.Fetched{Records: []ledger.SourceRecord{{Value: []byte("{")}}, Next: 1}); err != nil {
		t.Fatal(err)
	}
	<-sent
	part.Stop()
	observes := func() int { return s.store.count(func() int { return s.store.observes }) }
	const reads = 5
	began, before := time.Now(), observes()
	await(t, "it reads on", func() bool { return observes() >= before+reads })
	if took := time.Since(began); took < (reads-1)*FirstWait { // however long a busy machine takes, it pauses between
		t.Errorf("read %d times in %v, with %v between", reads, took, FirstWait)
	}
	r.cancel()
	r.life.Close()
	r.wg.Wait()
}

// greedy is a source that has a fetch for each partition that is not held, eight in a poll.
type greedy struct {
	at     map[ledger.Partition]ledger.Frontier
	held   map[ledger.Partition]bool
	record []byte
	mu     sync.Mutex // guards held
}

func (g *greedy) Poll(ctx context.Context) ([]broker.Fetched, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []broker.Fetched
	for p, at := range g.at {
		if len(out) < 8 && !g.held[p] {
			out = append(out, broker.Fetched{Partition: p, From: at, Next: at + 1, Records: []ledger.SourceRecord{{Partition: p, Offset: ledger.Offset(at), Value: g.record}}})
			g.at[p]++
		}
	}
	return out, ctx.Err()
}

func (g *greedy) Hold(p ledger.Partition, held bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held[p] = held
}

func (g *greedy) AllowRebalance() {}

func (g *greedy) Seek(ledger.Partition, ledger.Frontier) {}

func (g *greedy) Close(context.Context) {}

// I22: where partitions are many, what they have fetched and not decided while nothing can be committed is bounded together, and
// not by a fetch of each.
func TestI22FetchesOfManyPartitions(t *testing.T) {
	const partitions, each, poll = 128, 4 << 20, 8 * 4 << 20
	s := newStage(t, partitions, true)
	s.store.onCommit = func(int, *ledger.Batch) (bool, error) { return false, store.ErrUnavailable }
	o := s.options(s.store)
	o.Log = nil
	r := newRunner(s.ctx(), &o)
	g := &greedy{at: map[ledger.Partition]ledger.Frontier{}, held: map[ledger.Partition]bool{}, record: bytes.Repeat([]byte("x"), each)}
	r.join(g)
	var all []ledger.Partition
	for p := range ledger.Partition(partitions) {
		all, g.at[p] = append(all, p), 0
	}
	r.life.Assigned(t.Context(), all)
	if _, err := r.life.Positions(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	polled := make(chan error, 1)
	go func() { polled <- r.poll() }()
	await(t, "as much is fetched as may be", r.life.full)
	time.Sleep(100 * time.Millisecond) // of polls, where there were any
	weight := 0
	r.life.mu.lock()
	for _, part := range r.life.running {
		weight += part.in.weight()
	}
	r.life.mu.unlock()
	if weight > inboxesAll+poll+partitions*recordBytes {
		t.Errorf("%d MiB are fetched and not decided, %d MiB may be", weight>>20, (inboxesAll+poll)>>20)
	}
	r.end()
	if err := <-polled; err != nil {
		t.Error(err)
	}
	r.cancel()
	r.life.Close()
	r.wg.Wait()
}

// I22: what is fetched counts until the next is taken, and an idle partition keeps nothing of it.
func TestI22DecidedRecordsAreLetGo(t *testing.T) {
	a := newAssignment(t, 1, 0)
	a.Assigned(t.Context(), a.all)
	if _, err := a.Positions(t.Context(), a.all); err != nil {
		t.Fatal(err)
	}
	part := a.started[0]
	if err := part.Offer(broker.Fetched{Records: []ledger.SourceRecord{{Value: []byte("{")}}, Next: 1}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1 + recordBytes, 1 + recordBytes, 1 + recordBytes, 0} { // fetch, decide, commit, fetch
		if _, err := part.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := part.in.weight(); got != want {
			t.Errorf("%d bytes after step %d, want %d", got, i+1, want)
		}
	}
	if part.Frontier() != 1 || part.buffer != nil {
		t.Errorf("frontier %d, %d records kept", part.Frontier(), len(part.buffer))
	}
}

// I22: the key states of all partitions together are bounded, however many there are.
func TestI22KeyStatesOfManyPartitions(t *testing.T) {
	for partitions, want := range map[int32]int64{1: 512 << 20, 2: 256 << 20, 64: 8 << 20, 1_024: 512 << 10} {
		if got := newAssignment(t, partitions, 0).cache; got != want {
			t.Errorf("of %d partitions one has %d KiB, want %d", partitions, got>>10, want>>10)
		}
	}
}

// I22: a thousand partitions that wait for the same say so in one line, and one that goes on waiting costs nothing.
func TestI22ManyWaitsAreOneReason(t *testing.T) {
	const partitions = 1_024
	told := map[string]bool{}
	r := newReadiness(slog.New(slog.DiscardHandler), func(ready bool, why string) { told[why] = ready })
	away := func(p ledger.Partition) error { return fmt.Errorf("review partition %d: %w", p, store.ErrUnavailable) }
	for p := range ledger.Partition(partitions) {
		r.waits(wait{"database", partitions - 1 - p}, away(partitions-1-p))
	}
	r.set("broker", errors.New("no answer"))
	want := "broker: no answer; database: review partition 0: " + store.ErrUnavailable.Error() + " (1023 more wait for it)"
	if got := r.why(); got != want {
		t.Errorf("waits for %q, want %q", got, want)
	}
	again := away(7)
	if n := testing.AllocsPerRun(100, func() { r.waits(wait{"database", 7}, again) }); n > 0 {
		t.Errorf("%v allocations for a wait that goes on", n)
	}
	r.set("broker", nil)
	for p := range ledger.Partition(partitions - 1) {
		r.gone(p)
	}
	if got, want := r.why(), "database: "+away(partitions-1).Error(); got != want || told[""] {
		t.Errorf("waits for %q, want %q", got, want)
	}
	if r.gone(partitions - 1); r.why() != "" || !told[""] {
		t.Errorf("waits for %q at the end", r.why())
	}
}
