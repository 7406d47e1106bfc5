package verify_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/verify"
	"amends/internal/wire"
)

// tampered reads a store and changes what it returns.
type tampered struct {
	verify.Snapshots
	row     func(*store.ViewRow) bool // false drops the row
	journal func(*ledger.Decision) bool
	state   func(*store.PartitionState)
	receipt func([]store.Receipt) []store.Receipt
}

type tamperedSnapshot struct {
	store.Snapshot
	tampered
}

func (x tampered) Snapshot(ctx context.Context, fn func(store.Snapshot) error) error {
	return x.Snapshots.Snapshot(ctx, func(s store.Snapshot) error { return fn(tamperedSnapshot{s, x}) })
}

func (x tamperedSnapshot) Partitions(ctx context.Context) ([]store.PartitionState, error) {
	states, err := x.Snapshot.Partitions(ctx)
	for i := range states {
		if x.state != nil {
			x.state(&states[i])
		}
	}
	return states, err
}

func (x tamperedSnapshot) ViewRows(ctx context.Context, p ledger.Partition, fn func(store.ViewRow) error) error {
	return x.Snapshot.ViewRows(ctx, p, func(r store.ViewRow) error {
		if x.row != nil && !x.row(&r) {
			return nil
		}
		return fn(r)
	})
}

func (x tamperedSnapshot) Journal(ctx context.Context, p ledger.Partition, fn func(*ledger.Decision) error) error {
	return x.Snapshot.Journal(ctx, p, func(d *ledger.Decision) error {
		if x.journal != nil && !x.journal(d) {
			return nil
		}
		return fn(d)
	})
}

func (x tamperedSnapshot) Receipts(ctx context.Context, p ledger.Partition) ([]store.Receipt, error) {
	r, err := x.Snapshot.Receipts(ctx, p)
	if x.receipt != nil {
		r = x.receipt(append([]store.Receipt(nil), r...))
	}
	return r, err
}

func day(n int) ledger.Day { d, _ := ledger.DateOf(2026, 1, n); return d }

func at(kind ledger.OutputKind, n int) ledger.OutputID {
	id := ledger.OutputID{Key: widget, Kind: kind}
	if n > 0 {
		id.Day = day(n)
	}
	return id
}

// redo gives a row the digest of its own members, as someone would who edits both.
func redo(r *store.ViewRow) {
	e := wire.Envelope{Namespace: "demo", Sequence: r.Sequence, Output: r.ID, Version: r.Version, Present: r.Present, Close: r.Close,
		Previous: r.Previous, Threshold: r.Threshold, Status: r.Status, Index: int(r.Index), Count: int(r.Count),
		Cause: wire.Cause{Partition: r.Cause.Partition, Offset: r.Cause.Offset, TxnID: r.Cause.TxnID, Revision: r.Cause.Revision}}
	r.Digest = wire.EnvelopeDigest(wire.AppendEnvelope(nil, &e))
}

func on(id ledger.OutputID, change func(*store.ViewRow)) func(*store.ViewRow) bool {
	return func(r *store.ViewRow) bool {
		if r.ID == id {
			change(r)
		}
		return true
	}
}

func TestSC26DriftNamesTheTamperedRow(t *testing.T) {
	t.Parallel()
	w := worked(t)
	for name, c := range map[string]struct {
		id   ledger.OutputID
		what verify.What
		row  func(*store.ViewRow) bool
	}{
		"a close, digest and all (C28)":   {at(ledger.Balance, 2), verify.Value, on(at(ledger.Balance, 2), func(r *store.ViewRow) { r.Close = 51; redo(r) })},
		"a close alone":                   {at(ledger.Balance, 2), verify.Row, on(at(ledger.Balance, 2), func(r *store.ViewRow) { r.Close = 51 })},
		"a missing alert":                 {at(ledger.Alert, 2), verify.Missing, func(r *store.ViewRow) bool { return r.ID != at(ledger.Alert, 2) }},
		"a tombstone made present":        {at(ledger.Balance, 3), verify.Unexpected, on(at(ledger.Balance, 3), func(r *store.ViewRow) { r.Present, r.Close = true, 20; redo(r) })},
		"a present row made a tombstone":  {at(ledger.Balance, 1), verify.Missing, on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Present, r.Close = false, 0; redo(r) })},
		"a status":                        {at(ledger.TrustStatus, 0), verify.Value, on(at(ledger.TrustStatus, 0), blockedRow)},
		"a missing status":                {at(ledger.TrustStatus, 0), verify.Missing, func(r *store.ViewRow) bool { return r.ID.Kind != ledger.TrustStatus }},
		"an alert's previous":             {at(ledger.Alert, 2), verify.Value, on(at(ledger.Alert, 2), func(r *store.ViewRow) { r.Previous++; redo(r) })},
		"an alert's threshold":            {at(ledger.Alert, 2), verify.Value, on(at(ledger.Alert, 2), func(r *store.ViewRow) { r.Threshold--; redo(r) })},
		"a version":                       {at(ledger.Balance, 1), verify.Row, on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Version++ })},
		"a cause":                         {at(ledger.Balance, 1), verify.Row, on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Cause.TxnID = "T-9" })},
		"a cause past the cut":            {at(ledger.Balance, 1), verify.Row, on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Cause.Offset = 5; redo(r) })},
		"a cause elsewhere":               {at(ledger.Balance, 1), verify.Row, on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Cause.Partition = 1; redo(r) })},
		"a tombstone with a number":       {at(ledger.Balance, 3), verify.Row, on(at(ledger.Balance, 3), func(r *store.ViewRow) { r.Close = 7 })},
		"a sequence past the view's":      {at(ledger.Balance, 1), verify.Row, on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Sequence = 11; redo(r) })},
		"a repair index":                  {at(ledger.Balance, 1), verify.Row, on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Index = r.Count })},
		"a digest":                        {at(ledger.Balance, 1), verify.Row, on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Digest++ })},
		"a present status without status": {at(ledger.TrustStatus, 0), verify.Row, on(at(ledger.TrustStatus, 0), func(r *store.ViewRow) { r.Status = nil })},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(w)
			j.Store = tampered{Snapshots: w.NS, row: c.row}
			r := run(t, j)
			want(t, r, verify.Drift)
			if r.Differences != 1 || r.First.ID != c.id || r.First.What != c.what || r.First.Partition != 0 {
				t.Errorf("%d differences, first %+v", r.Differences, r.First)
			}
		})
	}
}

func blockedRow(r *store.ViewRow) {
	r.Status = &ledger.Status{Blocked: true, Reasons: []ledger.Reason{{Code: ledger.Ambiguous, TxnID: "T-1", Revision: 2}}}
	redo(r)
}

func TestDriftReportSides(t *testing.T) {
	t.Parallel()
	w := worked(t)
	j := job(w)
	j.Store = tampered{Snapshots: w.NS, row: func(r *store.ViewRow) bool {
		if r.Present && r.ID.Kind == ledger.Balance {
			r.Close++
			redo(r)
		}
		return r.ID.Kind != ledger.TrustStatus
	}}
	r := run(t, j)
	want(t, r, verify.Drift)
	if r.Differences != 3 {
		t.Errorf("%d differences", r.Differences)
	}
	cause := store.Cause{TxnID: "T-1", Revision: 2, Offset: 3}
	expected := &verify.Difference{What: verify.Value, ID: at(ledger.Balance, 1), Offset: -1,
		Detail:   "the view holds another value than the source gives",
		Expected: &verify.Side{Present: true, Payload: &verify.Payload{Kind: ledger.Balance, Close: 70}, Sources: []store.Cause{cause}},
		Actual:   &verify.Side{Present: true, Version: 2, Cause: &cause, Payload: &verify.Payload{Kind: ledger.Balance, Close: 71}, Sources: []store.Cause{cause}}}
	if diff := cmp.Diff(expected, r.First); diff != "" {
		t.Error(diff)
	}
}

// A BLOCKED key's balances are frozen: only its status and each row's own digest are compared (S10).
func TestBlockedKeyComparesItsStatusOnly(t *testing.T) {
	t.Parallel()
	w := worked(t)
	w.Values(t, `{"schema":1,"txn_id":"T-1","revision":2,"state":"cancelled","item":"widget","location":"berlin"}`)
	w.Settle(t)
	for name, c := range map[string]struct {
		status verify.Status
		row    func(*store.ViewRow) bool
	}{
		"another close":            {verify.Blocked, on(at(ledger.Balance, 2), func(r *store.ViewRow) { r.Close = 1; redo(r) })},
		"a missing balance":        {verify.Blocked, func(r *store.ViewRow) bool { return r.ID != at(ledger.Balance, 2) }},
		"a close without a digest": {verify.Drift, on(at(ledger.Balance, 2), func(r *store.ViewRow) { r.Close = 1 })},
		"READY": {verify.Drift, on(at(ledger.TrustStatus, 0), func(r *store.ViewRow) {
			r.Status = &ledger.Status{}
			redo(r)
		})},
		"another reason": {verify.Drift, on(at(ledger.TrustStatus, 0), func(r *store.ViewRow) {
			r.Status.Reasons[0].Revision++
			redo(r)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(w)
			j.Store = tampered{Snapshots: w.NS, row: c.row}
			want(t, run(t, j), c.status)
		})
	}
}

// TestDeepFindsEveryCorruption shows I19.
func TestDeepFindsEveryCorruption(t *testing.T) {
	t.Parallel()
	w := worked(t)
	w.Publish(t, 0, broker.Message{Key: []byte("k"), Value: []byte("poison")})
	w.Settle(t)
	decision := func(offset ledger.Offset, change func(*ledger.Decision)) func(*ledger.Decision) bool {
		return func(d *ledger.Decision) bool {
			if d.Offset == offset {
				change(d)
			}
			return true
		}
	}
	receipts := func(change func([]store.Receipt)) func([]store.Receipt) []store.Receipt {
		return func(r []store.Receipt) []store.Receipt {
			if len(r) > 0 {
				change(r)
			}
			return r
		}
	}
	state := func(change func(*store.PartitionState)) func(*store.PartitionState) {
		return func(s *store.PartitionState) {
			if s.Partition == 0 {
				change(s)
			}
		}
	}
	for name, c := range map[string]struct {
		tampered
		what verify.What
	}{
		"journal digest":          {tampered{journal: decision(1, func(d *ledger.Decision) { d.Digest[3]++ })}, verify.Journal},
		"journal class":           {tampered{journal: decision(3, func(d *ledger.Decision) { d.Class = ledger.Duplicate })}, verify.Journal},
		"journal quantity":        {tampered{journal: decision(3, func(d *ledger.Decision) { d.Assertion.Payload.Quantity++ })}, verify.Journal},
		"journal txn":             {tampered{journal: decision(2, func(d *ledger.Decision) { d.Assertion.TxnID = "x" })}, verify.Journal},
		"journal revision":        {tampered{journal: decision(2, func(d *ledger.Decision) { d.Assertion.Revision++ })}, verify.Journal},
		"journal rejection":       {tampered{journal: decision(5, func(d *ledger.Decision) { d.Rejection = ledger.InvalidValue })}, verify.Journal},
		"quarantined value":       {tampered{journal: decision(5, func(d *ledger.Decision) { d.Evidence.Value = []byte("poisoN") })}, verify.Journal},
		"quarantined key absent":  {tampered{journal: decision(5, func(d *ledger.Decision) { d.Evidence.Key = nil })}, verify.Journal},
		"quarantined length":      {tampered{journal: decision(5, func(d *ledger.Decision) { d.Evidence.ValueLength++ })}, verify.Journal},
		"quarantined sum":         {tampered{journal: decision(5, func(d *ledger.Decision) { d.Evidence.ValueSHA[0]++ })}, verify.Journal},
		"missing journal row":     {tampered{journal: func(d *ledger.Decision) bool { return d.Offset != 5 }}, verify.Journal},
		"journal close":           {tampered{journal: decision(0, func(d *ledger.Decision) { d.Changes[0].Close++ })}, verify.Topic},
		"journal sequence":        {tampered{journal: decision(3, func(d *ledger.Decision) { d.Sequence++ })}, verify.Journal},
		"lost journal output":     {tampered{journal: decision(4, func(d *ledger.Decision) { d.Changes = nil })}, verify.Journal},
		"receipt offset":          {tampered{receipt: receipts(func(r []store.Receipt) { r[1].Offset++ })}, verify.Topic},
		"receipt sequence":        {tampered{receipt: receipts(func(r []store.Receipt) { r[1].First++ })}, verify.Topic},
		"receipt missing":         {tampered{receipt: func(r []store.Receipt) []store.Receipt { return r[:max(len(r)-1, 0)] }}, verify.Topic},
		"relay position":          {tampered{state: state(func(s *store.PartitionState) { s.Relay.Output-- })}, verify.Topic},
		"view frontier":           {tampered{state: state(func(s *store.PartitionState) { s.View.Output-- })}, verify.Fold},
		"tombstone version":       {tampered{row: on(at(ledger.Balance, 3), func(r *store.ViewRow) { r.Version = 4; redo(r) })}, verify.Fold},
		"tombstone missing":       {tampered{row: func(r *store.ViewRow) bool { return r.ID != at(ledger.Alert, 3) }}, verify.Fold},
		"row of another sequence": {tampered{row: on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Sequence = 4; redo(r) })}, verify.Fold},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(w)
			c.Snapshots = w.NS
			j.Store, j.Deep = c.tampered, true
			r := run(t, j)
			want(t, r, verify.Drift)
			if r.First.What != c.what {
				t.Errorf("first %+v, want %s", r.First, c.what)
			}
		})
	}
	want(t, run(t, func() *verify.Job { j := job(w); j.Deep = true; return j }()), verify.Pass)
}

// A topic with other bytes, a gap and a foreign record is found by a deep run even though the view was made from it.
func TestDeepReadsTheTopic(t *testing.T) {
	t.Parallel()
	w := worked(t)
	p, err := broker.NewProducer(w.Broker, w.Manifest.Output.Topic, w.Manifest.Output.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Produce(t.Context(), 1, []broker.Message{{Key: []byte("k"), Value: []byte("foreign")}}); err != nil {
		t.Fatal(err)
	}
	j := job(w)
	j.Deep = true
	want(t, run(t, j), verify.Pass) // past what the view has applied
	j.Store = tampered{Snapshots: w.NS, state: func(s *store.PartitionState) {
		if s.Partition == 1 {
			s.View.Output = 1
		}
	}}
	r := run(t, j)
	want(t, r, verify.Drift)
	if r.First.What != verify.Topic || r.First.Offset != 0 || r.First.Partition != 1 {
		t.Errorf("%+v", r.First)
	}
}
