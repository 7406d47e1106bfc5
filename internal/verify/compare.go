package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"amends/internal/ledger"
	"amends/internal/oracle"
	"amends/internal/pause"
	"amends/internal/store"
	"amends/internal/verify/stored"
)

// compare takes one snapshot and compares everything in it with the oracle at its cuts. While the snapshot is open, no more
// than maxTail source offsets are read.
func (r *run) compare(budget context.Context) error {
	var behind time.Time // since when a cut has been below what the oracle holds
	for {
		var cuts []store.PartitionState
		err := r.Store.Snapshot(budget, func(s store.Snapshot) (err error) {
			cuts, err = r.states(budget, s)
			if err != nil {
				return err
			}
			return r.compareSnapshot(budget, s, cuts)
		})
		switch {
		case errors.Is(err, errTail):
			behind = time.Time{} // read the tail outside the snapshot
			if err := r.readToCuts(budget, cuts); err != nil {
				return err
			}
		case errors.Is(err, errBehind):
			if behind.IsZero() {
				behind = time.Now()
			}
			if time.Since(behind) > patience && r.reached(cuts) {
				behind = time.Time{}
				if r.waited = true; r.changes {
					break // an audit leaves such a partition at the cut that it has verified
				}
				r.startOver(cuts)
				if err := r.readToCuts(budget, cuts); err != nil {
					return err
				}
			}
			if err := pause.For(budget, lookEvery); err != nil {
				return err
			}
		case errors.Is(err, store.ErrUnavailable):
			if err := pause.For(budget, lookEvery); err != nil {
				return err
			}
		default:
			return err
		}
		r.restart()
	}
}

// restart forgets what a comparison that is done again had found.
func (r *run) restart() {
	x := r.report
	x.Boundary, x.Blocked, x.First, x.Reasons, x.byPartition = nil, nil, nil, nil, nil
	x.Differences, x.Outputs, x.Messages, x.Keys = 0, 0, 0, 0
}

func (r *run) compareSnapshot(budget context.Context, s store.Snapshot, states []store.PartitionState) error {
	if err := r.comparable(states); err != nil {
		return err
	}
	if err := r.readToCuts(budget, states); err != nil {
		return err
	}
	for p := range states {
		p, one := ledger.Partition(p), r.comparePartition
		r.boundary(p, states[p])
		if r.skipped[p] == ViewBehind {
			r.stillBlocked(p) // nobody has become READY by it
		}
		if r.skipped[p] != "" {
			continue
		}
		if r.changes && r.prefix.parts[p].since != nil {
			one = r.compareChanged
		}
		if err := one(budget, s, p, states[p]); err != nil {
			return err
		}
	}
	if r.Deep && !r.changes {
		if err := r.deep(budget, s, states); err != nil {
			return err
		}
	}
	r.compared = states
	r.report.conclude()
	return nil
}

// comparable reports whether the cuts of a snapshot can be compared at: errStopped, errBehind or errTail where not. An audit
// leaves out what cannot and goes on with the other partitions; a *MovedError where one does not go on from its verified cut.
func (r *run) comparable(states []store.PartitionState) error {
	r.skipped = make([]Code, len(states))
	var tail ledger.Frontier
	for p := range states {
		more, why := CutOf(states[p])-r.prefix.parts[p].at, ""
		if since := r.prefix.parts[p].since; since != nil {
			why = stored.Moved(since.cut, states[p])
		}
		switch {
		case states[p].View == nil:
		case states[p].View.Stopped && !r.audit:
			return errStopped
		case states[p].View.Stopped:
			r.skipped[p] = PartitionStopped
			r.stoppedReason(ledger.Partition(p), states[p])
			continue
		case why != "":
			r.moved = cmp.Or(r.moved, &MovedError{Partition: ledger.Partition(p), Why: why})
			r.prefix.reset(ledger.Partition(p)) // nothing goes on from there
			continue
		case more < 0 && r.prefix.parts[p].since != nil && r.waited:
			r.skipped[p] = ViewBehind
			continue
		case more < 0, r.Deep && !r.waited && stored.Ahead(states[p]):
			return errBehind
		}
		tail += max(more, 0)
	}
	if r.moved != nil {
		return r.moved
	}
	if !r.reached(states) {
		return errBehind
	}
	if tail > maxTail {
		return errTail
	}
	return nil
}

// comparison walks the view rows of one partition beside the oracle's expectations, both ordered by key.
type comparison struct {
	*run
	expected func() (oracle.Expectation, bool)
	next     oracle.Expectation
	more     bool
	rows     []store.ViewRow // of the key being read
	check    stored.RowCheck
	oracle   *oracle.Oracle
	p        ledger.Partition
}

func (r *run) comparePartition(ctx context.Context, s store.Snapshot, p ledger.Partition, state store.PartitionState) error {
	if missing := stored.MissingPosition(state); missing != "" {
		r.report.add(Difference{What: Row, Partition: p, Offset: -1, Detail: missing})
	}
	if state.View == nil {
		return nil // no cut, and nothing that its rows could be compared with
	}
	c := &comparison{run: r, p: p, oracle: r.prefix.parts[p].oracle, check: stored.RowCheck{Config: r.Manifest.Config, Partition: p, View: state.View}}
	expected, stop := iter.Pull(c.oracle.All())
	defer stop()
	c.expected = expected
	c.next, c.more = expected()
	err := s.ViewRows(ctx, p, func(row store.ViewRow) error {
		r.report.Outputs++
		if fault := stored.Place(row.ID); fault != "" { // it stands nowhere among the others
			r.report.add(Difference{What: Row, Partition: p, ID: row.ID, Offset: -1, Detail: fault, Actual: actual(&row)})
			return nil
		}
		if n := len(c.rows); n > 0 {
			if stored.CompareIDs(c.rows[n-1].ID, row.ID) >= 0 {
				return &store.DamagedRow{ID: row.ID, Err: fmt.Errorf("%w: view rows out of order at %s", store.ErrIntegrity, stored.Name(row.ID))}
			}
			if c.rows[n-1].ID.Key != row.ID.Key {
				c.flush()
			}
		}
		c.rows = append(c.rows, row)
		return nil
	})
	if errors.Is(err, store.ErrIntegrity) {
		r.report.add(damagedRow(p, err))
		return nil // the rows after it were not read
	}
	if err != nil {
		return fmt.Errorf("read view rows of partition %d: %w", p, err)
	}
	c.flush()
	for c.more {
		c.compareKey(c.next, nil)
		c.next, c.more = c.expected()
	}
	return nil
}

// damagedRow is the difference of a view row that cannot be read.
func damagedRow(p ledger.Partition, err error) Difference {
	d := Difference{What: Row, Partition: p, Offset: -1, Detail: err.Error()}
	var row *store.DamagedRow
	if errors.As(err, &row) {
		d.ID = row.ID
	}
	return d
}

// flush compares the rows gathered of one key, after the keys before it that have no rows.
func (c *comparison) flush() {
	if len(c.rows) == 0 {
		return
	}
	key := c.rows[0].ID.Key
	for c.more && c.next.Key.Compare(key) < 0 {
		c.compareKey(c.next, nil)
		c.next, c.more = c.expected()
	}
	e := oracle.Expectation{Key: key, Partition: c.p}
	if c.more && c.next.Key == key {
		e = c.next
		c.next, c.more = c.expected()
	}
	c.compareKey(e, c.rows)
	c.rows = c.rows[:0]
}

// compareKey compares one key: what is expected and the rows, both ordered by day and kind with the status last.
func (c *comparison) compareKey(e oracle.Expectation, rows []store.ViewRow) {
	if e.Known {
		c.report.Keys++
	}
	if e.Status.Blocked {
		c.report.Blocked = append(c.report.Blocked, BlockedKey{Key: e.Key, Status: e.Status, Partition: c.p})
	}
	c.compareOutputs(e, outputs(e), rows)
}

// compareOutputs compares what is wanted of one key and the rows, both in order.
func (c *comparison) compareOutputs(e oracle.Expectation, wanted []output, rows []store.ViewRow) {
	for len(wanted) > 0 || len(rows) > 0 {
		var w *output
		var row *store.ViewRow
		order := first(wanted, rows, func(w *output, row *store.ViewRow) int { return stored.CompareIDs(w.id, row.ID) })
		if order <= 0 {
			w, wanted = &wanted[0], wanted[1:]
		}
		if order >= 0 {
			row, rows = &rows[0], rows[1:]
		}
		c.compareOutput(e, w, row)
	}
}

// compareOutput compares one output; want is nil where none is expected, row where there is none.
func (c *comparison) compareOutput(e oracle.Expectation, want *output, row *store.ViewRow) {
	if row != nil {
		if fault := c.check.Fault(row); fault != "" {
			c.report.add(Difference{What: Row, Detail: fault, Partition: c.p, ID: row.ID, Offset: -1, Expected: c.wanted(want, row.ID), Actual: actual(row)})
			return
		}
		if e.Status.Blocked && row.ID.Kind != ledger.TrustStatus {
			return // frozen as last committed, not certified
		}
	}
	d := Difference{Partition: c.p, Offset: -1}
	switch {
	case want == nil && !row.Present:
		return
	case want == nil:
		d.What, d.ID, d.Detail = Unexpected, row.ID, "the view holds an output that the source does not give"
	case row == nil || !row.Present:
		d.What, d.ID, d.Detail = Missing, want.id, "the source gives an output that the view does not hold"
	case !want.payload.equal(payloadOf(row)):
		d.What, d.ID, d.Detail = Value, want.id, "the view holds another value than the source gives"
	default:
		return
	}
	d.Expected, d.Actual = c.wanted(want, d.ID), actual(row)
	c.report.add(d)
}

// output is one expected output.
type output struct {
	payload Payload
	id      ledger.OutputID
}

// outputs lists what e expects, ordered by day and kind with the status last; nothing for a key without valid records.
func outputs(e oracle.Expectation) []output {
	if !e.Known {
		return nil
	}
	out := make([]output, 0, len(e.Balances)+len(e.Alerts)+1)
	alerts := e.Alerts
	for _, b := range e.Balances {
		out = append(out, output{id: ledger.OutputID{Key: e.Key, Day: b.Day, Kind: ledger.Balance}, payload: Payload{Kind: ledger.Balance, Close: b.Close}})
		if len(alerts) > 0 && alerts[0].Day == b.Day {
			a := alerts[0]
			alerts = alerts[1:]
			out = append(out, output{id: ledger.OutputID{Key: e.Key, Day: a.Day, Kind: ledger.Alert},
				payload: Payload{Kind: ledger.Alert, Previous: a.Previous, Close: a.Close, Threshold: a.Threshold}})
		}
	}
	status := e.Status
	return append(out, output{id: ledger.OutputID{Key: e.Key, Kind: ledger.TrustStatus}, payload: Payload{Kind: ledger.TrustStatus, Status: &status}})
}

func (p Payload) equal(o Payload) bool {
	if p.Status != nil && o.Status != nil {
		return p.Kind == o.Kind && p.Status.Equal(*o.Status)
	}
	return p == o
}

func payloadOf(row *store.ViewRow) Payload {
	return Payload{Kind: row.ID.Kind, Status: row.Status, Close: row.Close, Previous: row.Previous, Threshold: row.Threshold}
}

// actual is the side of a view row, nil for none.
func actual(row *store.ViewRow) *Side {
	if row == nil {
		return nil
	}
	cause := row.Cause
	s := &Side{Cause: &cause, Version: row.Version, Present: row.Present, Sources: []store.Cause{cause}}
	if row.Present {
		p := payloadOf(row)
		s.Payload = &p
	}
	return s
}

// wanted is the side of the oracle, with the source records that decide it.
func (c *comparison) wanted(want *output, id ledger.OutputID) *Side {
	s := &Side{}
	if want != nil {
		s.Present, s.Payload = true, &want.payload
	}
	var sources []oracle.Source
	if id.Kind == ledger.TrustStatus {
		sources = c.oracle.Conflicts(id.Key)
	} else {
		sources = c.oracle.Sources(id.Key, id.Day)
	}
	for _, x := range sources[:min(len(sources), MaxSources)] {
		s.Sources = append(s.Sources, store.Cause{TxnID: x.Assertion.TxnID, Revision: x.Assertion.Revision, Offset: x.Offset, Partition: x.Partition})
	}
	return s
}
