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
	"amends/internal/wire"
)

func TestSC28WorkedExampleThroughRelayAndView(t *testing.T) {
	w := newWorld(t, twoPartitions)
	w.commit(t, 0, worked(t)...)
	if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a")); err != nil {
		t.Fatal(err)
	}
	records := w.published(t, 0)
	if d := cmp.Diff(workedEnvelopes(), values(records)); d != "" {
		t.Fatal(d)
	}
	for _, r := range records {
		if string(r.Key) != widgetKey {
			t.Errorf("key %s", r.Key)
		}
	}
	w.checkReceipts(t, 0, workedEnvelopes())
	if st := w.state(t, 0); len(st.receipts) != 1 {
		t.Errorf("receipts %+v, want one range", st.receipts)
	}
	l := w.lease(t, store.View, 0, "a")
	if err := w.materialize(t, w.viewOptions(), l); err != nil {
		t.Fatal(err)
	}
	st := w.state(t, 0)
	if d := cmp.Diff(workedRows, st.show()); d != "" {
		t.Fatal(d)
	}
	if pos := w.viewAt(t, 0); pos != (store.ViewPosition{Term: l.Term, Nonce: l.Nonce, Output: 11, Sequence: 11, Cause: 4}) {
		t.Errorf("view position %+v", pos)
	}
	for _, r := range st.rows {
		if r.Digest != wire.EnvelopeDigest([]byte(workedEnvelopes()[r.Sequence])) {
			t.Errorf("digest of sequence %d", r.Sequence)
		}
	}
}

// TestSC16CrashBetweenAcknowledgementAndReceipt: the next relay finds the records in the tail, adds none and writes receipts.
// Shows F3, B1.
func TestSC16CrashBetweenAcknowledgementAndReceipt(t *testing.T) {
	for _, pageOutputs := range []int{1, 4, 100} {
		w := newWorld(t, twoPartitions)
		w.commit(t, 0, worked(t)...)
		o := w.relayOptions()
		o.PageOutputs = pageOutputs
		crash := errors.New("killed")
		o.Store = &faultyReceipts{RelayStore: w.ns, fault: func(n int, do func() error) error {
			if n > 1 {
				return crash
			}
			return do()
		}}
		// The first page has its receipt, every later attempt to write one dies; what was published stays.
		err := w.relay(t, o, w.lease(t, store.Relay, 0, "a"))
		if pageOutputs < 11 && !errors.Is(err, crash) {
			t.Fatal(err)
		}
		before := len(w.published(t, 0))
		o.Store = w.ns
		if err := w.relay(t, o, w.lease(t, store.Relay, 0, "a")); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(workedEnvelopes(), values(w.published(t, 0))); d != "" {
			t.Fatalf("pages of %d, %d published before: %s", pageOutputs, before, d)
		}
		w.checkReceipts(t, 0, workedEnvelopes())
	}
}

// TestLostReceiptReplies: an unknown receipt is read back, and only the receipt is tried again (S12).
// Shows I8.
func TestLostReceiptReplies(t *testing.T) {
	for name, fault := range map[string]func(n int, do func() error) error{
		"reply lost": func(n int, do func() error) error {
			if err := do(); err != nil || n%2 == 0 {
				return err
			}
			return fmt.Errorf("acknowledge: %w", store.ErrCommitUnknown)
		},
		"request lost": func(n int, do func() error) error {
			if n%2 == 1 {
				return fmt.Errorf("acknowledge: %w", store.ErrCommitUnknown)
			}
			return do()
		},
		"deadlock": func(n int, do func() error) error {
			if n%3 != 0 {
				return errors.New("deadlock detected")
			}
			return do()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoPartitions)
			w.commit(t, 0, worked(t)...)
			o := w.relayOptions()
			o.PageOutputs = 3
			o.Store = &faultyReceipts{RelayStore: w.ns, fault: fault}
			if err := w.relay(t, o, w.lease(t, store.Relay, 0, "a")); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(workedEnvelopes(), values(w.published(t, 0))); d != "" {
				t.Fatal(d)
			}
			w.checkReceipts(t, 0, workedEnvelopes())
		})
	}
}

func TestReceiptIsGivenUpAfterThreeAttempts(t *testing.T) {
	w := newWorld(t, twoPartitions)
	w.commit(t, 0, worked(t)...)
	o := w.relayOptions()
	f := &faultyReceipts{RelayStore: w.ns, fault: func(int, func() error) error { return errors.New("disk full") }}
	o.Store = f
	err := w.relay(t, o, w.lease(t, store.Relay, 0, "a"))
	if err == nil || !strings.Contains(err.Error(), "disk full") || f.n != 3 {
		t.Fatalf("%d attempts: %v", f.n, err)
	}
}

// TestUnknownSends: the client is closed and the tail read before anything is sent again; no order is broken, and what
// was written is not written twice.
// Shows B2.
func TestUnknownSends(t *testing.T) {
	unknown := fmt.Errorf("send: %w", broker.ErrUnknownOutcome)
	for name, fault := range map[string]func(m []broker.Message, send func([]broker.Message) ([]ledger.Offset, error)) ([]ledger.Offset, error){
		"all written, none acknowledged": func(m []broker.Message, send func([]broker.Message) ([]ledger.Offset, error)) ([]ledger.Offset, error) {
			_, err := send(m)
			return nil, errors.Join(err, unknown)
		},
		"a part written and acknowledged": func(m []broker.Message, send func([]broker.Message) ([]ledger.Offset, error)) ([]ledger.Offset, error) {
			offsets, err := send(m[:len(m)/2])
			return offsets, errors.Join(err, unknown)
		},
		"a part written, none acknowledged": func(m []broker.Message, send func([]broker.Message) ([]ledger.Offset, error)) ([]ledger.Offset, error) {
			_, err := send(m[:1])
			return nil, errors.Join(err, unknown)
		},
		"nothing written": func([]broker.Message, func([]broker.Message) ([]ledger.Offset, error)) ([]ledger.Offset, error) {
			return nil, unknown
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoPartitions)
			w.commit(t, 0, worked(t)...)
			o := w.relayOptions()
			o.PageOutputs = 4
			producers := 0
			real := o.Topic.NewProducer
			o.Topic.NewProducer = func() (delivery.Producer, error) {
				p, err := real()
				if producers++; producers > 6 || producers%2 == 0 {
					return p, err
				}
				return &faultyProducer{p, fault}, err
			}
			if err := w.relay(t, o, w.lease(t, store.Relay, 0, "a")); err != nil {
				t.Fatal(err)
			}
			if producers < 2 {
				t.Fatalf("%d producers: the one of the unknown send was used again", producers)
			}
			if d := cmp.Diff(workedEnvelopes(), values(w.published(t, 0))); d != "" {
				t.Fatal(d)
			}
			w.checkReceipts(t, 0, workedEnvelopes())
		})
	}
}

// TestSC38C39FormerRelayAddsRepetitionsOnly: after a takeover the old one's publication stands, its receipt is refused, and
// the topic's first occurrences and the view are right.
// Shows B3.
func TestSC38C39FormerRelayAddsRepetitionsOnly(t *testing.T) {
	w := newWorld(t, twoPartitions)
	decisions := worked(t)
	w.commit(t, 0, decisions[:2]...)
	o := w.relayOptions()
	o.PageOutputs = 2
	old := delivery.NewRelayStepper(o, w.lease(t, store.Relay, 0, "a"))
	defer old.Close()
	if err := settle(t, old, func(pr delivery.Progress) bool { return pr.Idle }); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2 * 60e9)
	w.commit(t, 0, decisions[2:]...)
	current := w.lease(t, store.Relay, 0, "b")
	if err := w.relay(t, o, current); err != nil {
		t.Fatal(err)
	}
	if err := settle(t, old, func(pr delivery.Progress) bool { return pr.Idle }); !errors.Is(err, store.ErrFence) {
		t.Fatalf("the former holder ended with %v", err)
	}
	got := values(w.published(t, 0))
	if len(got) != 13 {
		t.Fatalf("%d records: the former holder publishes one page before it notices", len(got))
	}
	if d := cmp.Diff(workedEnvelopes(), got[:11]); d != "" {
		t.Fatal(d)
	}
	w.checkReceipts(t, 0, workedEnvelopes())
	if err := w.materialize(t, w.viewOptions(), w.lease(t, store.View, 0, "a")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(workedRows, w.state(t, 0).show()); d != "" {
		t.Fatal(d)
	}
}

// TestRepetitionsInTheTailSplitReceipts: first occurrences alone get receipts, as ranges of consecutive offsets.
func TestRepetitionsInTheTailSplitReceipts(t *testing.T) {
	w := newWorld(t, twoPartitions)
	w.commit(t, 0, worked(t)...)
	e := workedEnvelopes()
	w.publish(t, 0, widgetKey, e[0], e[1], e[0], e[1], e[2], e[3], e[2], e[3], e[4])
	if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a")); err != nil {
		t.Fatal(err)
	}
	want := []store.Receipt{{First: 0, Next: 2, Offset: 0}, {First: 2, Next: 4, Offset: 4}, {First: 4, Next: 5, Offset: 8}, {First: 5, Next: 11, Offset: 9}}
	if d := cmp.Diff(want, w.state(t, 0).receipts); d != "" {
		t.Fatal(d)
	}
	w.checkReceipts(t, 0, e)
}

// TestLossyFailover: the topic is ahead of an outbox that lost its tail. The relay publishes nothing and compares once
// the worker has caught up; other bytes stop it.
func TestLossyFailover(t *testing.T) {
	for name, last := range map[string]int64{"same bytes": 80, "other bytes": 81} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoPartitions)
			d := worked(t)
			e := workedEnvelopes()
			w.commit(t, 0, d[0])
			w.publish(t, 0, widgetKey, e[:5]...)
			s := delivery.NewRelayStepper(w.relayOptions(), w.lease(t, store.Relay, 0, "a"))
			defer s.Close()
			for range 5 {
				if _, err := s.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			pr, err := s.Step(t.Context())
			if err != nil || !strings.Contains(pr.Waiting, "ahead of the outbox at output offset 2, sequence 2") {
				t.Fatalf("%+v %v", pr, err)
			}
			if n := len(w.published(t, 0)); n != 5 {
				t.Fatalf("%d records", n)
			}
			if pos := w.relayAt(t, 0); pos.Sequence != 2 || pos.Output != 2 {
				t.Fatalf("position %+v", pos)
			}
			d[1].Changes[0].Close = last
			w.commit(t, 0, d[1:]...)
			err = settle(t, s, func(pr delivery.Progress) bool { return pr.Idle })
			if last != 80 {
				if !errors.Is(err, store.ErrIntegrity) || len(w.published(t, 0)) != 5 {
					t.Fatalf("%d records, %v", len(w.published(t, 0)), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(e, values(w.published(t, 0))); d != "" {
				t.Fatal(d)
			}
			w.checkReceipts(t, 0, e)
		})
	}
}

// TestTailThatIsNotTheOutbox: each stops the relay before it publishes anything.
func TestTailThatIsNotTheOutbox(t *testing.T) {
	e := workedEnvelopes()
	for name, tail := range map[string][]string{
		"a sequence is missing":  {e[0], e[2]},
		"does not begin at next": {e[1]},
		"other payload":          {e[0], e[1], strings.Replace(e[2], `"close":80`, `"close":81`, 1)},
		"not an envelope":        {"{}"},
		"other namespace":        {strings.Replace(e[0], `"demo"`, `"emod"`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoPartitions)
			w.commit(t, 0, worked(t)...)
			w.publish(t, 0, widgetKey, tail...)
			err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a"))
			if !errors.Is(err, store.ErrIntegrity) || len(w.published(t, 0)) != len(tail) {
				t.Fatalf("%d records, %v", len(w.published(t, 0)), err)
			}
		})
	}
	t.Run("a sequence is missing where the topic is ahead", func(t *testing.T) {
		w := newWorld(t, twoPartitions)
		w.commit(t, 0, worked(t)[0])
		w.publish(t, 0, widgetKey, e[0], e[1], e[3])
		if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a")); !errors.Is(err, store.ErrIntegrity) {
			t.Fatal(err)
		}
	})
	t.Run("other key", func(t *testing.T) {
		w := newWorld(t, twoPartitions)
		w.commit(t, 0, worked(t)...)
		w.publish(t, 0, `{"item":"gadget","location":"berlin"}`, e[0])
		if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a")); !errors.Is(err, store.ErrIntegrity) {
			t.Fatal(err)
		}
	})
}

// TestLastReceiptIsReadBack: at start the record of the last receipt must be there with the outbox's bytes.
func TestLastReceiptIsReadBack(t *testing.T) {
	e := workedEnvelopes()
	for name, tc := range map[string]struct {
		topic   []string
		receipt store.Receipt
	}{
		"missing":     {e[:1], store.Receipt{First: 0, Next: 2, Offset: 0}},
		"other bytes": {[]string{e[0], strings.Replace(e[1], "T-1", "T-9", 1), e[2]}, store.Receipt{First: 0, Next: 2, Offset: 0}},
		"moved":       {[]string{e[0], e[1], e[2]}, store.Receipt{First: 0, Next: 2, Offset: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoPartitions)
			w.commit(t, 0, worked(t)...)
			w.publish(t, 0, widgetKey, tc.topic...)
			l := w.lease(t, store.Relay, 0, "a")
			if err := w.ns.Acknowledge(t.Context(), l, tc.receipt); err != nil {
				t.Fatal(err)
			}
			if err := w.relay(t, w.relayOptions(), l); !errors.Is(err, store.ErrIntegrity) || len(w.published(t, 0)) != len(tc.topic) {
				t.Fatalf("%d records, %v", len(w.published(t, 0)), err)
			}
		})
	}
}

// TestI23TopicIDIsReadBeforeEachReceipt: records acknowledged by a topic that was then made again get no receipt.
// Shows I23.
func TestI23TopicIDIsReadBeforeEachReceipt(t *testing.T) {
	w := newWorld(t, twoPartitions)
	w.commit(t, 0, worked(t)...)
	o := w.relayOptions()
	sent := false
	o.Topic.Topics = incarnations{w.admin, func() string {
		if sent {
			return "kafka:ffffffffffffffffffffffffffffffff"
		}
		return w.topic.Incarnation
	}}
	produce := o.Topic.NewProducer
	o.Topic.NewProducer = func() (delivery.Producer, error) {
		p, err := produce()
		return &faultyProducer{p, func(m []broker.Message, send func([]broker.Message) ([]ledger.Offset, error)) ([]ledger.Offset, error) {
			sent = true
			return send(m)
		}}, err
	}
	var identity *broker.IdentityError
	if err := w.relay(t, o, w.lease(t, store.Relay, 0, "a")); !errors.As(err, &identity) {
		t.Fatal(err)
	}
	if st := w.state(t, 0); len(st.receipts) != 0 {
		t.Fatalf("receipts %+v", st.receipts)
	}
}

// incarnations answers for the topic's identity; everything else is the broker's.
type incarnations struct {
	delivery.Topics
	now func() string
}

func (i incarnations) Incarnation(context.Context, string) (string, error) { return i.now(), nil }

// TestPipelinedPagesKeepOrder: pages encoded ahead and receipts written beside publication; every sequence once, in order.
func TestPipelinedPagesKeepOrder(t *testing.T) {
	w := newWorld(t, twoPartitions)
	want := w.fill(t, 0, 300, 37)
	o := w.relayOptions()
	o.Serial = false
	for i, limits := range [][2]int{{100, 1 << 20}, {7, 1 << 20}, {10_000, 2_000}} {
		o.PageOutputs, o.PageBytes = limits[0], limits[1]
		if i > 0 {
			want = append(want, w.fill(t, 0, 50, 37)...)
		}
		s := delivery.NewRelayStepper(o, w.lease(t, store.Relay, 0, "a"))
		err := settle(t, s, func(delivery.Progress) bool { return int(w.relayAt(t, 0).Sequence) == len(want) })
		s.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, values(w.published(t, 0))); d != "" {
		t.Fatal(d)
	}
	w.checkReceipts(t, 0, want)
}

// fill appends n decisions of width outputs each and returns the envelopes that they are.
func (w *world) fill(t testing.TB, p ledger.Partition, n, width int) []string {
	t.Helper()
	owned, err := w.ns.Observe(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	first := on(t, "2026-01-01")
	key := map[ledger.Partition]ledger.StockKey{0: widget, 1: far}[p]
	enc := wire.NewEncoder(w.cfg, p)
	var batch []ledger.Decision
	var out []string
	sequence := owned.Sequence
	for i := range n {
		at := owned.Frontier + ledger.Frontier(i)
		d := decision(key, fmt.Sprint("T-", at), 1)
		for j := range width {
			d.Changes = append(d.Changes, balance(first+ledger.Day(j), ledger.Version(at+1), int64(at)*7+int64(j)))
		}
		batch = append(batch, d)
		d.Offset, d.Sequence = ledger.Offset(at), sequence
		sequence += ledger.Sequence(width)
		for j := range width {
			out = append(out, string(enc.Append(nil, &d, j)))
		}
	}
	w.commit(t, p, batch...)
	return out
}

// TestCloseWritesReceiptsOfWhatWasAcknowledged: an orderly stop leaves nothing to the tail scan.
func TestCloseWritesReceiptsOfWhatWasAcknowledged(t *testing.T) {
	w := newWorld(t, twoPartitions)
	w.commit(t, 0, worked(t)...)
	o := w.relayOptions()
	o.Serial = false
	s := delivery.NewRelayStepper(o, w.lease(t, store.Relay, 0, "a"))
	for {
		pr, err := s.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if pr.Outputs > 0 {
			break
		}
	}
	s.Close()
	w.checkReceipts(t, 0, workedEnvelopes())
}

func TestSC37HostileIdentifiersKeepTheirBytes(t *testing.T) {
	w := newWorld(t, `{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":1,"quantity_scale":0,"stock_keys":[],"open_keys":{"opening_balance":0,"threshold":null}}`)
	items := []string{"a\x00b", `"<script>&\`, "\u202eabc", "🙂é", "e\u0301", strings.Repeat("x", 512), "85123A", "85123a"}
	for i, item := range items {
		key := ledger.StockKey{Item: item, Location: items[len(items)-1-i]}
		w.commit(t, 0, decision(key, item, 1, balance(on(t, "2026-01-01"), 1, int64(i)), ready(1)))
	}
	if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a")); err != nil {
		t.Fatal(err)
	}
	if err := w.materialize(t, w.viewOptions(), w.lease(t, store.View, 0, "a")); err != nil {
		t.Fatal(err)
	}
	rows := w.state(t, 0).rows
	if len(rows) != 2*len(items) {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if !slices.Contains(items, r.ID.Key.Item) || r.Cause.TxnID != r.ID.Key.Item {
			t.Errorf("row %+v", r)
		}
	}
}
