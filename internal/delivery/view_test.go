package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/ledger"
	"amends/internal/store"
)

// TestSC21ViolationIsStoredAndTheStopIsDurable: whole repairs before it are committed, reason and exact bytes are kept, a
// restart finds the stop, the other partition goes on.
func TestSC21ViolationIsStoredAndTheStopIsDurable(t *testing.T) {
	e := workedEnvelopes()
	for name, tc := range map[string]struct{ reason, key, value string }{
		"equal version, other payload": {"REPETITION_DIFFERS", widgetKey, strings.Replace(e[10], `"present":false,"payload":null`, `"present":true,"payload":{"close":1}`, 1)},
		"equal version, other cause":   {"REPETITION_DIFFERS", widgetKey, strings.Replace(e[10], `"txn_id":"T-3"`, `"txn_id":"T-4"`, 1)},
		"a lost publication":           {"SEQUENCE_GAP", widgetKey, strings.Replace(e[10], `"sequence":10`, `"sequence":12`, 1)},
		"not canonical":                {"NOT_CANONICAL", widgetKey, e[10] + " "},
		"other namespace":              {"OTHER_NAMESPACE", widgetKey, strings.Replace(e[10], `"demo"`, `"demo2"`, 1)},
		"other key":                    {"KEY_MISMATCH", `{"item":"far","location":"berlin"}`, e[10]},
		"wrong partition":              {"WRONG_PARTITION", `{"item":"far","location":"berlin"}`, strings.Replace(e[10], "widget", "far", 1)},
		"cause on another partition":   {"CAUSE_PARTITION", widgetKey, strings.Replace(e[10], `"partition":0`, `"partition":1`, 1)},
		"version skipped":              {"VERSION_GAP", widgetKey, strings.NewReplacer(`"sequence":10`, `"sequence":11`, `"version":3`, `"version":5`, `"offset":4`, `"offset":5`).Replace(e[10])},
		"a repair's middle":            {"REPAIR_BROKEN", widgetKey, strings.NewReplacer(`"sequence":10`, `"sequence":11`, `"index":0,"count":1`, `"index":1,"count":2`).Replace(e[10])},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoPartitions)
			w.commit(t, 0, worked(t)...)
			if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a")); err != nil {
				t.Fatal(err)
			}
			w.publish(t, 0, tc.key, tc.value)
			w.publish(t, 0, widgetKey, e[10])
			var stop *delivery.StoppedError
			l := w.lease(t, store.View, 0, "a")
			if err := w.materialize(t, w.viewOptions(), l); !errors.As(err, &stop) || stop.Offset != 11 || !errors.Is(err, store.ErrProtocol) {
				t.Fatal(err)
			}
			check := func(when string) {
				st := w.state(t, 0)
				if d := cmp.Diff(workedRows, st.show()); d != "" {
					t.Fatal(when, d)
				}
				if len(st.violations) != 1 || !strings.HasPrefix(st.violations[0].Reason, tc.reason+": ") || st.violations[0].Offset != 11 ||
					string(st.violations[0].Key) != tc.key || string(st.violations[0].Value) != tc.value {
					t.Fatalf("%s: %+v", when, st.violations)
				}
				if pos := w.viewAt(t, 0); pos.Output != 11 || pos.Sequence != 11 || pos.Cause != 4 || !pos.Stopped {
					t.Fatalf("%s: position %+v", when, pos)
				}
			}
			check("at first")
			if err := w.materialize(t, w.viewOptions(), w.lease(t, store.View, 0, "a")); !errors.As(err, &stop) {
				t.Fatalf("after a restart: %v", err)
			}
			check("after a restart")
			w.commit(t, 1, decision(far, "T-1", 1, balance(on(t, "2026-01-01"), 1, 5)))
			if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 1, "a")); err != nil {
				t.Fatal(err)
			}
			if err := w.materialize(t, w.viewOptions(), w.lease(t, store.View, 1, "a")); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"2026-01-01 balance v1 5"}, w.state(t, 1).show()); d != "" {
				t.Fatal(d)
			}
		})
	}
}

// TestSC17SC20RepetitionsAndOldVersions: what a relay publishes again, and old versions after the tombstone, change nothing.
// Shows B4.
func TestSC17SC20RepetitionsAndOldVersions(t *testing.T) {
	w := newWorld(t, twoPartitions)
	e := workedEnvelopes()
	w.publish(t, 0, widgetKey, e[0], e[1], e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[5], e[6], e[7], e[8], e[9], e[10])
	w.publish(t, 0, widgetKey, e[3], e[8], e[10], e[0])
	o := w.viewOptions()
	o.PageOutputs = 2
	for end := range ledger.Frontier(3) {
		if err := w.materialize(t, o, w.lease(t, store.View, 0, "a")); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(workedRows, w.state(t, 0).show()); d != "" {
			t.Fatal(d)
		}
		if pos := w.viewAt(t, 0); pos.Output != 19+end || pos.Sequence != 11 {
			t.Fatalf("%+v", pos)
		}
		w.publish(t, 0, widgetKey, e[3])
	}
}

// TestRowsRefuteAnAssumption: a version that the store does not have is a violation at its own record.
func TestRowsRefuteAnAssumption(t *testing.T) {
	w := newWorld(t, twoPartitions)
	e := workedEnvelopes()
	bad := strings.Replace(e[2], `"version":1`, `"version":7`, 1)
	w.publish(t, 0, widgetKey, e[0], e[1], bad, e[3], e[4])
	var stop *delivery.StoppedError
	if err := w.materialize(t, w.viewOptions(), w.lease(t, store.View, 0, "a")); !errors.As(err, &stop) || stop.Offset != 2 {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"2026-01-01 balance v1 100", "- status v1 0"}, w.state(t, 0).show()); d != "" {
		t.Fatal(d)
	}
	t.Run("in a repair that does not complete", func(t *testing.T) {
		w := newWorld(t, twoPartitions)
		w.publish(t, 0, widgetKey, strings.Replace(e[0], `"version":1`, `"version":7`, 1))
		s := delivery.NewViewStepper(w.viewOptions(), w.lease(t, store.View, 0, "a"))
		defer s.Close()
		if err := settle(t, s, func(delivery.Progress) bool { return false }); !errors.As(err, &stop) || stop.Offset != 0 {
			t.Fatal(err)
		}
	})
}

// faultyCommits loses replies and requests of ApplyViewInput.
type faultyCommits struct {
	delivery.ViewStore
	fault func(n int, do func() error) error
	n     int
}

func (f *faultyCommits) ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) error {
	f.n++
	return f.fault(f.n, func() error { return f.ViewStore.ApplyViewInput(ctx, l, page) })
}

func TestUnknownViewCommits(t *testing.T) {
	e := workedEnvelopes()
	for name, fault := range map[string]func(n int, do func() error) error{
		"reply lost": func(_ int, do func() error) error {
			if err := do(); err != nil {
				return err
			}
			return fmt.Errorf("commit: %w", store.ErrCommitUnknown)
		},
		"request lost": func(n int, do func() error) error {
			if n%3 != 0 {
				return fmt.Errorf("commit: %w", store.ErrCommitUnknown)
			}
			return do()
		},
		"away, then back": func(n int, do func() error) error {
			if n%2 == 1 {
				return fmt.Errorf("commit: %w", store.ErrUnavailable)
			}
			return do()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoPartitions)
			w.publish(t, 0, widgetKey, e...)
			o := w.viewOptions()
			o.PageOutputs = 3
			o.Store = &faultyCommits{ViewStore: w.ns, fault: fault}
			s := delivery.NewViewStepper(o, w.lease(t, store.View, 0, "a"))
			defer s.Close()
			for w.viewAt(t, 0).Output < 11 {
				if _, err := s.Step(t.Context()); err != nil && !errors.Is(err, store.ErrUnavailable) {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(workedRows, w.state(t, 0).show()); d != "" {
				t.Fatal(d)
			}
		})
	}
}

// TestI18FormerViewIsFenced: a page under a term that is no longer installed is refused and ends the view.
// Shows I18.
func TestI18FormerViewIsFenced(t *testing.T) {
	w := newWorld(t, twoPartitions)
	e := workedEnvelopes()
	w.publish(t, 0, widgetKey, e[:5]...)
	old := delivery.NewViewStepper(w.viewOptions(), w.lease(t, store.View, 0, "a"))
	defer old.Close()
	if err := settle(t, old, func(delivery.Progress) bool { return w.viewAt(t, 0).Output == 5 }); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2 * 60e9)
	w.lease(t, store.View, 0, "b")
	w.publish(t, 0, widgetKey, e[5:]...)
	if err := settle(t, old, func(delivery.Progress) bool { return false }); !errors.Is(err, store.ErrFence) {
		t.Fatal(err)
	}
	if pos := w.viewAt(t, 0); pos.Output != 5 {
		t.Fatalf("%+v", pos)
	}
}

func TestViewRefusesAPositionBeyondTheEnd(t *testing.T) {
	w := newWorld(t, twoPartitions)
	l := w.lease(t, store.View, 0, "a")
	at := w.viewAt(t, 0)
	next := at
	next.Output = 7
	if err := w.ns.ApplyViewInput(t.Context(), l, &store.ViewPage{Partition: 0, Before: at, Next: next}); err != nil {
		t.Fatal(err)
	}
	var outside *broker.RangeError
	if err := w.materialize(t, w.viewOptions(), l); !errors.As(err, &outside) {
		t.Fatal(err)
	}
}

// TestSC33LargeRepairIsVisibleAtOnce: 3,650 days, 7,301 outputs, published and applied in pages that hold a part of it.
func TestSC33LargeRepairIsVisibleAtOnce(t *testing.T) {
	w := newWorld(t, twoPartitions)
	first := on(t, "2026-01-01")
	d := decision(widget, "T-0", 1)
	for i := range 3_650 {
		d.Changes = append(d.Changes, balance(first+ledger.Day(i), 1, int64(i%50)), alert(first+ledger.Day(i), 1, 60, int64(i%50)))
	}
	d.Changes = append(d.Changes, ready(1))
	again := decision(widget, "T-0", 2)
	for i := range 3_650 {
		again.Changes = append(again.Changes, balance(first+ledger.Day(i), 2, int64(i%50)+1), withdrawn(ledger.Alert, first+ledger.Day(i), 2))
	}
	w.commit(t, 0, d, again)
	o := w.relayOptions()
	o.Serial, o.PageOutputs = false, 1_000
	if err := w.relay(t, o, w.lease(t, store.Relay, 0, "a")); err != nil {
		t.Fatal(err)
	}
	total := len(d.Changes) + len(again.Changes)
	if n := len(w.published(t, 0)); n != total {
		t.Fatalf("%d outputs", n)
	}
	// The reader gets a part of a repair at a time, and the view restarts in the middle.
	w.opts.FetchPartitionBytes = 100_000
	vo := w.viewOptions()
	vo.PageOutputs = 500
	seen := map[store.ViewPosition]bool{}
	for restart := range 3 {
		s := delivery.NewViewStepper(vo, w.lease(t, store.View, 0, "a"))
		steps := 0
		err := settle(t, s, func(delivery.Progress) bool {
			steps++
			pos := w.viewAt(t, 0)
			rows := len(w.state(t, 0).rows)
			pos.Term, pos.Nonce = 0, store.Nonce{}
			seen[pos] = true
			if rows != 0 && rows != len(d.Changes) {
				t.Fatalf("%d rows are visible", rows)
			}
			return pos.Output == ledger.Frontier(total) || restart < 2 && steps == 9
		})
		s.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 3 {
		t.Fatalf("positions %v: want before, between and after the two repairs", seen)
	}
	for _, r := range w.state(t, 0).rows {
		if r.Version != 2 && r.ID.Kind != ledger.TrustStatus || r.Present == (r.ID.Kind == ledger.Alert) {
			t.Fatalf("row %+v", r)
		}
	}
}

// TestC36OnePageWithManyVersions: v1 present, v2 withdrawn, v3 present of one output in one page.
func TestC36OnePageWithManyVersions(t *testing.T) {
	w := newWorld(t, twoPartitions)
	day := on(t, "2026-01-01")
	w.commit(t, 0, decision(widget, "A", 1, balance(day, 1, 10)), decision(widget, "A", 2, withdrawn(ledger.Balance, day, 2)), decision(widget, "A", 3, balance(day, 3, 30)))
	if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a")); err != nil {
		t.Fatal(err)
	}
	if err := w.materialize(t, w.viewOptions(), w.lease(t, store.View, 0, "a")); err != nil {
		t.Fatal(err)
	}
	if got := w.state(t, 0).show(); !slices.Equal(got, []string{"2026-01-01 balance v3 30"}) {
		t.Fatal(got)
	}
}

// TestViewPagesGrowWithLag: what the topic already holds is one page up to the limit, however small the fetches are; each
// output is then written once.
func TestViewPagesGrowWithLag(t *testing.T) {
	w := newWorld(t, twoPartitions)
	want := w.fill(t, 0, 100, 37)
	if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a")); err != nil {
		t.Fatal(err)
	}
	// The broker returns whole batches: several make several fetches.
	for range 9 {
		want = append(want, w.fill(t, 0, 100, 37)...)
		if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a")); err != nil {
			t.Fatal(err)
		}
	}
	w.opts.FetchPartitionBytes = 1_000
	o := w.viewOptions()
	commits := &faultyCommits{ViewStore: w.ns, fault: func(_ int, do func() error) error { return do() }}
	o.Store = commits
	if err := w.materialize(t, o, w.lease(t, store.View, 0, "a")); err != nil {
		t.Fatal(err)
	}
	if rows := len(w.state(t, 0).rows); rows != 37 || int(w.viewAt(t, 0).Sequence) != len(want) || commits.n >= 10 {
		t.Fatalf("%d rows, %d commits for %d outputs", rows, commits.n, len(want))
	}
	o.PageOutputs, commits.n = 3_700, 0
	fresh := newWorld(t, twoPartitions)
	fresh.publish(t, 0, widgetKey, want...)
	o.Topic, commits.ViewStore = fresh.topic, fresh.ns
	if err := fresh.materialize(t, o, fresh.lease(t, store.View, 0, "a")); err != nil {
		t.Fatal(err)
	}
	if commits.n < 10 {
		t.Fatalf("%d commits, no page may hold more than 3,700 outputs", commits.n)
	}
}
