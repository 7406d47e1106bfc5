package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/memory"
	"amends/internal/wire"
)

// stage is a source topic, a namespace over it and the workers of a test.
type stage struct {
	t        *testing.T
	cluster  *kfake.Cluster // nil on other brokers
	opts     broker.Options
	name     string // of the topic, and of the namespace
	protocol broker.GroupProtocol
	admin    *broker.Admin
	topic    broker.Topic
	cfg      *manifest.Config
	store    *faulty
	reader   storeReader
}

const widget = "widget"

// newStage makes a topic of n partitions on an in-process broker and a namespace in a memory store, with open keys or
// the worked example's.
func newStage(t *testing.T, n int32, openKeys bool) *stage {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := newStageOn(t, c.ListenAddrs(), "src", n, openKeys)
	s.cluster = c
	ns, err := memory.New().Init(s.ctx(), s.cfg, s.name)
	if err != nil {
		t.Fatal(err)
	}
	s.store, s.reader = &faulty{Store: ns}, ns
	return s
}

// newStageOn makes a stage without a store.
func newStageOn(t *testing.T, brokers []string, name string, n int32, openKeys bool) *stage {
	t.Helper()
	s := &stage{t: t, name: name, opts: broker.Options{Brokers: brokers, FetchWait: 50 * time.Millisecond}}
	var err error
	if s.admin, err = broker.Open(s.opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.admin.Close)
	if s.topic, err = s.admin.CreateTopic(s.ctx(), name, n, 1); err != nil {
		t.Fatal(err)
	}
	config := manifest.Config{Namespace: name, SourceIncarnation: s.topic.Incarnation, LedgerOrigin: day("2026-01-01"), Partitions: n}
	if openKeys {
		config.OpenKeys = &manifest.Terms{}
	} else {
		sixty := int64(60)
		config.StockKeys = []manifest.StockKey{{Key: ledger.StockKey{Item: widget, Location: "berlin"}, Terms: manifest.Terms{Threshold: &sixty}}}
	}
	if s.cfg, err = manifest.New(config); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	s.t.Cleanup(cancel)
	return ctx
}

// options are those of a worker with a client of its own; the admin client is shared.
func (s *stage) options(st Store) Options {
	return Options{Store: st, Topics: s.admin, Manifest: &manifest.Manifest{Config: s.cfg, SourceTopic: s.name},
		Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)),
		Join: func(m broker.Member) (Source, error) {
			return broker.NewGroup(broker.GroupOptions{Member: m, Group: GroupID(s.cfg.Namespace), Topic: s.name, Incarnation: s.topic.Incarnation, Options: s.opts, Heartbeat: 100 * time.Millisecond, Protocol: s.protocol})
		}}
}

// running is a worker in a goroutine.
type running struct {
	s      *stage
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

func (s *stage) run(o Options) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{s: s, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = Run(ctx, o)
	}()
	s.t.Cleanup(func() { cancel(); <-r.done })
	return r
}

// stop asks the worker to end, as SIGTERM does, and returns what Run returned.
func (r *running) stop() error {
	r.cancel()
	return r.wait()
}

// patience is how long anything that should happen soon may take on a busy machine.
const patience = 90 * time.Second

// wait returns what Run returned when it ends.
func (r *running) wait() error {
	r.s.t.Helper()
	select {
	case <-r.done:
		return r.err
	case <-time.After(patience):
		r.s.t.Fatalf("the worker did not end within %v", patience)
		return nil
	}
}

// load publishes values to the partitions of their keys, in order.
func (s *stage) load(values ...string) {
	s.t.Helper()
	p, err := broker.NewProducer(s.opts, s.name, s.topic.Incarnation)
	if err != nil {
		s.t.Fatal(err)
	}
	defer p.Close()
	by := map[ledger.Partition][]broker.Message{}
	for _, v := range values {
		a, _, _ := wire.ParseValue([]byte(v))
		to, _ := s.cfg.Route(a.Key)
		by[to] = append(by[to], broker.Message{Key: wire.AppendKey(nil, a.Key), Value: []byte(v)})
	}
	for to, messages := range by {
		if _, err := p.Produce(s.ctx(), to, messages); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *stage) frontier(p ledger.Partition) ledger.Frontier {
	o, err := s.store.Store.Observe(s.ctx(), p)
	if err != nil {
		s.t.Fatal(err)
	}
	return o.Frontier
}

// drained waits until every partition's frontier is the topic's end.
func (s *stage) drained() {
	s.t.Helper()
	ends, err := s.admin.Ends(s.ctx(), s.name)
	if err != nil {
		s.t.Fatal(err)
	}
	await(s.t, fmt.Sprintf("the frontiers reach %v", ends), func() bool {
		for p, end := range ends {
			o, err := s.store.Store.Observe(s.ctx(), ledger.Partition(p))
			if err != nil && !errors.Is(err, store.ErrUnavailable) { // one connection of the pool may be among those that were ended
				s.t.Fatal(err)
			}
			if err != nil || o.Frontier < ledger.Frontier(end) {
				return false
			}
		}
		return true
	})
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v: %s", patience, what)
		}
	}
}

// undisturbed decides the whole topic in one go and compares the store with it: nothing lost, doubled or different.
func (s *stage) undisturbed() {
	s.t.Helper()
	fresh, err := memory.New().Init(s.ctx(), s.cfg, s.name)
	if err != nil {
		s.t.Fatal(err)
	}
	calm := &stage{t: s.t, name: s.name, opts: s.opts, admin: s.admin, topic: s.topic, cfg: s.cfg, store: &faulty{Store: fresh}, reader: fresh}
	o := calm.options(calm.store)
	o.Log = nil
	o.Join = func(m broker.Member) (Source, error) {
		return broker.NewGroup(broker.GroupOptions{Member: m, Group: GroupID(s.name) + ".calm", Topic: s.name, Incarnation: s.topic.Incarnation, Options: s.opts})
	}
	r := calm.run(o)
	calm.drained()
	if err := r.stop(); err != nil {
		s.t.Fatal(err)
	}
	for p := range s.cfg.Partitions {
		want, wantState := outputs(s.t, fresh, ledger.Partition(p))
		got, state := outputs(s.t, s.reader, ledger.Partition(p))
		if d := cmp.Diff(want, got); d != "" {
			s.t.Fatalf("partition %d differs from an undisturbed run: %s", p, d)
		}
		if wantState.Owned.Frontier != state.Owned.Frontier || wantState.Owned.Sequence != state.Owned.Sequence {
			s.t.Fatalf("partition %d ends at %+v, want %+v", p, state.Owned, wantState.Owned)
		}
		if wantState.Measurements.Total.Work.Records != state.Measurements.Total.Work.Records {
			s.t.Fatalf("partition %d measured %d records", p, state.Measurements.Total.Work.Records)
		}
	}
}

// history is a stream of new receipts over many keys and days.
func history(from, n int) []string {
	var out []string
	for i := from; i < from+n; i++ {
		on := ledger.Day(int(day("2026-01-01")) + i*7%30).String()
		out = append(out, receipt(fmt.Sprintf("T-%d", i), fmt.Sprintf("item-%d", i%23), on, i%9+1))
	}
	return out
}

// why is the reason for which a role is not ready, read beside the goroutines that change it.
func (r *readiness) why() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason()
}
