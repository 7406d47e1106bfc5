package delivery_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/store"
)

// services runs relays and views and collects how each ended.
type services struct {
	wg   sync.WaitGroup
	mu   sync.Mutex
	ends map[string]error
}

func (s *services) run(ctx context.Context, name string, service *delivery.Service) {
	s.wg.Go(func() {
		err := service.Run(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ends[name] = err
	})
}

func (s *services) ended(name string) (error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err, ok := s.ends[name]
	return err, ok
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	const patience = 90 * time.Second // what should happen soon, on a busy machine
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// keeper makes leases that do not end by a machine that is busy: who stops gives them up.
func (w *world) keeper(holder string, o lease.Options) *lease.Keeper {
	o.TTL, o.Renew, o.Retry = time.Minute, 50*time.Millisecond, 50*time.Millisecond
	return lease.New(w.ns, holder, o)
}

func liveWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, twoPartitions)
	began := time.Now()
	base := w.now
	w.clock(func() time.Time { return base.Add(time.Since(began)) })
	return w
}

// TestSC28SC38ServicesAndTheirStandbys: two relays and two views of one namespace; the first of each ends, the second takes over.
func TestSC28SC38ServicesAndTheirStandbys(t *testing.T) {
	w := liveWorld(t)
	s := services{ends: map[string]error{}}
	wake := delivery.NewSignal(2)
	stops := map[string]context.CancelFunc{}
	for _, holder := range []string{"a", "b"} {
		ctx, stop := context.WithCancel(t.Context())
		stops[holder] = stop
		defer stop()
		k := w.keeper(holder, lease.Options{})
		ro := w.relayOptions()
		ro.Serial = false
		s.run(ctx, "relay "+holder, delivery.NewRelay(ro, k, wake))
		s.run(ctx, "view "+holder, delivery.NewView(w.viewOptions(), k))
		until(t, "the leases are taken", func() bool { return w.relayAt(t, 0).Term > 0 && w.viewAt(t, 0).Term > 0 && w.viewAt(t, 1).Term > 0 })
	}
	d := worked(t)
	w.commit(t, 0, d[:3]...)
	wake.Notify(0)
	until(t, "the first five outputs are visible", func() bool { return w.viewAt(t, 0).Output == 5 })
	stops["a"]()
	until(t, "the first instance ends", func() bool {
		_, relay := s.ended("relay a")
		_, view := s.ended("view a")
		return relay && view
	})
	w.commit(t, 0, d[3:]...)
	wake.Notify(0)
	until(t, "the rest is visible", func() bool { return w.viewAt(t, 0).Output == 11 && w.relayAt(t, 0).Sequence == 11 })
	stops["b"]()
	s.wg.Wait()
	for name, err := range s.ends {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d := cmp.Diff(workedEnvelopes(), values(w.published(t, 0))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(workedRows, w.state(t, 0).show()); d != "" {
		t.Error(d)
	}
	w.checkReceipts(t, 0, workedEnvelopes())
}

func TestSC38NoStandbyFailsVisibly(t *testing.T) {
	w := liveWorld(t)
	for p := range w.topic.Partitions {
		w.lease(t, store.Relay, ledger.Partition(p), "other")
	}
	err := delivery.NewRelay(w.relayOptions(), w.keeper("a", lease.Options{NoStandby: true}), nil).Run(t.Context())
	if !errors.Is(err, store.ErrServiceBusy) {
		t.Fatal(err)
	}
}

// TestSC21ViewEndsWhenAllPartitionsAreStopped: one stopped partition leaves the other at work; with both the role ends,
// again at once when it is started again.
func TestSC21ViewEndsWhenAllPartitionsAreStopped(t *testing.T) {
	w := liveWorld(t)
	s := services{ends: map[string]error{}}
	view := delivery.NewView(w.viewOptions(), w.keeper("a", lease.Options{}))
	s.run(t.Context(), "view", view)
	w.publish(t, 0, widgetKey, "{}")
	until(t, "partition 0 is stopped", func() bool { return view.States()[0].Phase == delivery.Stopped })
	good := strings.NewReplacer("widget", "far", `"partition":0`, `"partition":1`)
	e := workedEnvelopes()
	w.publish(t, 1, `{"item":"far","location":"berlin"}`, good.Replace(e[0]), good.Replace(e[1]))
	until(t, "partition 1 goes on", func() bool { return w.viewAt(t, 1).Output == 2 })
	if err, ended := s.ended("view"); ended {
		t.Fatal(err)
	}
	w.publish(t, 1, `{"item":"far","location":"berlin"}`, "[]")
	s.wg.Wait()
	var stop *delivery.StoppedError
	if err, _ := s.ended("view"); !errors.As(err, &stop) {
		t.Fatal(err)
	}
	if err := delivery.NewView(w.viewOptions(), w.keeper("b", lease.Options{})).Run(t.Context()); !errors.As(err, &stop) {
		t.Fatal(err)
	}
}

// TestSC24OutputTopicIsWatched: refused at start, and noticed while running.
// Shows F13.
func TestSC24OutputTopicIsWatched(t *testing.T) {
	w := liveWorld(t)
	var identity *broker.IdentityError
	o := w.viewOptions()
	o.Topic.Incarnation = "kafka:ffffffffffffffffffffffffffffffff"
	if err := delivery.NewView(o, w.keeper("a", lease.Options{})).Run(t.Context()); !errors.As(err, &identity) {
		t.Fatal(err)
	}
	o.Topic.Incarnation, o.Topic.Partitions = w.topic.Incarnation, 3
	if err := delivery.NewView(o, w.keeper("a", lease.Options{})).Run(t.Context()); !errors.As(err, &identity) {
		t.Fatal(err)
	}
	finite := &settings{Topics: w.admin}
	o = w.viewOptions()
	o.Topic.Topics = finite
	s := services{ends: map[string]error{}}
	s.run(t.Context(), "view", delivery.NewView(o, w.keeper("a", lease.Options{})))
	until(t, "the view runs", func() bool { return w.viewAt(t, 0).Term > 0 }) // so it has looked
	finite.set(60_000)
	s.wg.Wait()
	if err, _ := s.ended("view"); !errors.As(err, &identity) || identity.What != "retention.ms" {
		t.Fatal(err)
	}
}

// settings changes what the broker says about a topic's retention.
type settings struct {
	delivery.Topics
	mu        sync.Mutex
	retention int64
}

func (s *settings) set(ms int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retention = ms
}

func (s *settings) Topic(ctx context.Context, name string) (broker.Topic, error) {
	topic, err := s.Topics.Topic(ctx, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retention != 0 {
		topic.RetentionMS = s.retention
	}
	return topic, err
}

// TestServicesWaitForADatabaseThatIsAway: nothing ends, the state says why, and it goes on by itself.
func TestServicesWaitForADatabaseThatIsAway(t *testing.T) {
	w := liveWorld(t)
	w.commit(t, 0, worked(t)...)
	var mu sync.Mutex
	gone := true
	o := w.relayOptions()
	o.Store = &faultyReceipts{RelayStore: w.ns, fault: func(_ int, do func() error) error {
		mu.Lock()
		defer mu.Unlock()
		if gone {
			return store.ErrUnavailable
		}
		return do()
	}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s := services{ends: map[string]error{}}
	relay := delivery.NewRelay(o, w.keeper("a", lease.Options{}), nil)
	s.run(ctx, "relay", relay)
	until(t, "the relay waits", func() bool { return relay.States()[0].Phase == delivery.Waiting })
	mu.Lock()
	gone = false
	mu.Unlock()
	until(t, "the receipts are written", func() bool { return w.relayAt(t, 0).Sequence == 11 })
	stop()
	s.wg.Wait()
	if err, _ := s.ended("relay"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(workedEnvelopes(), values(w.published(t, 0))); d != "" {
		t.Fatal(d)
	}
}
