package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"amends/internal/ledger"
	"amends/internal/oracle"
	"amends/internal/store"
	"amends/internal/verify/stored"
)

// Bounds of what a cycle of an audit compares one by one; past them it compares every row of the partition.
const (
	maxChanged = 200_000 // outputs
	maxTouched = 20_000  // keys, and
	maxNoted   = 500_000 // balances and alerts that these had before
	rowsAtOnce = 2_000   // rows of one statement
)

// Changed reads what changed, in a snapshot (both stores).
type Changed interface {
	// Decided calls fn for every decision with outputs whose source offset is above after and at most to, in order.
	Decided(ctx context.Context, p ledger.Partition, after, to ledger.Offset, fn func(*ledger.Decision) error) error
	// Rows calls fn for the view rows that a partition has of these outputs, in no order.
	Rows(ctx context.Context, p ledger.Partition, ids []ledger.OutputID, fn func(store.ViewRow) error) error
}

// Cut is where a partition was compared.
type Cut = stored.Cut

// MovedError: the state of a partition does not go on from its verified cut. A promoted standby or a restored server may hold
// other rows below it, decided and applied again since: what changed past the cut is not all that changed, and only a full cycle
// looks at the rest.
type MovedError struct {
	Why       string
	Partition ledger.Partition
}

// Error says which partition and why; it is what makes the next cycle a full one.
func (e *MovedError) Error() string { return fmt.Sprintf("partition %d: %s", e.Partition, e.Why) }

// changes is what an audit knows of one partition beside its recomputation: the cut that it verified last, and the keys with
// source records past it, each with what was expected of it there. A nil one notes nothing.
type changes struct {
	before  map[ledger.StockKey]oracle.Expectation
	blocked map[ledger.StockKey]ledger.Status // of the keys that are BLOCKED at the cut
	cut     Cut
	from    ledger.Frontier // from where on before tells what records change, at or below the cut
	noted   int             // balances and alerts in before
	whole   bool            // too much changed to say what: every row is compared
}

// note remembers what o expects of the key that a record past the cut is about to change.
func (c *changes) note(o *oracle.Oracle, r *ledger.SourceRecord) {
	if c == nil || c.whole || ledger.Frontier(r.Offset) < c.from {
		return
	}
	key, ok := o.Named(r.Key)
	if _, noted := c.before[key]; !ok || noted {
		return
	}
	e := o.Expected(key)
	if c.noted += len(e.Balances) + len(e.Alerts); len(c.before) == maxTouched || c.noted > maxNoted {
		c.whole, c.before = true, nil
		return
	}
	c.before[key] = e
}

// first says which of two lists in the same order goes on with what comes first: below 0 a, above 0 b, 0 both with the same.
func first[A, B any](a []A, b []B, compare func(*A, *B) int) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return compare(&a[0], &b[0])
}

// differing calls fn with the id of every output that two lists do not give alike; both are ordered as drift reports are.
func differing(a, b []output, fn func(ledger.OutputID)) {
	for len(a) > 0 || len(b) > 0 {
		switch order := first(a, b, func(a, b *output) int { return stored.CompareIDs(a.id, b.id) }); {
		case order < 0:
			fn(a[0].id)
			a = a[1:]
		case order > 0:
			fn(b[0].id)
			b = b[1:]
		default:
			if !a[0].payload.equal(b[0].payload) {
				fn(a[0].id)
			}
			a, b = a[1:], b[1:]
		}
	}
}

// errWhole: too many outputs changed to compare them one by one.
var errWhole = errors.New("too much changed")

// compareChanged compares every output of a partition that changed since the verified cut: those that the journal decided
// since, and those that the recomputation gives otherwise than at the cut, so that a change which the journal conceals is
// looked at too. Its cost follows what is new.
func (r *run) compareChanged(ctx context.Context, s store.Snapshot, p ledger.Partition, state store.PartitionState) error {
	since := r.prefix.parts[p].since
	changed, ok := s.(Changed)
	if !ok || since.whole || stored.MissingPosition(state) != "" {
		return r.comparePartition(ctx, s, p, state)
	}
	c := &changedCheck{comparison: comparison{run: r, p: p, oracle: r.prefix.parts[p].oracle,
		check: stored.RowCheck{Config: r.Manifest.Config, Partition: p, View: state.View}}, decided: map[ledger.OutputID]stored.Decided{}, ids: map[ledger.OutputID]struct{}{}}
	err := c.journal(ctx, changed, since.cut.Cause, state.View.Cause)
	if errors.Is(err, errWhole) {
		return r.comparePartition(ctx, s, p, state)
	}
	if err != nil {
		return err
	}
	for key, before := range since.before {
		e := c.oracle.Expected(key)
		differing(outputs(before), outputs(e), func(id ledger.OutputID) { c.ids[id] = struct{}{} })
	}
	if len(c.ids) > maxChanged {
		return r.comparePartition(ctx, s, p, state)
	}
	ids := slices.SortedFunc(maps.Keys(c.ids), stored.CompareIDs)
	if err := c.rowsOf(ctx, changed, ids); err != nil {
		return err
	}
	r.report.Keys += c.keys
	r.stillBlocked(p)
	return nil
}

// changedCheck compares outputs one by one.
type changedCheck struct {
	comparison
	decided map[ledger.OutputID]stored.Decided
	ids     map[ledger.OutputID]struct{}
	keys    int64
}

// journal notes the outputs decided since the cut that the view has applied, which is not ahead of the journal.
func (c *changedCheck) journal(ctx context.Context, s Changed, after, to ledger.Offset) error {
	digests := stored.NewDigester(c.Manifest.Config, c.p)
	err := s.Decided(ctx, c.p, after, to, func(d *ledger.Decision) error {
		for i := range d.Changes {
			id := ledger.OutputID{Key: d.Assertion.Key, Day: d.Changes[i].Day, Kind: d.Changes[i].Kind}
			c.ids[id] = struct{}{}
			digest, ok := digests.Encode(d, i)
			if !ok {
				c.report.add(Difference{What: Journal, Partition: c.p, ID: id, Offset: int64(d.Offset), Detail: "it holds an alert of a key without threshold"})
			}
			c.decided[id] = stored.Decided{Version: d.Changes[i].Version, Digest: digest}
		}
		if len(c.ids) > maxChanged {
			return errWhole
		}
		return nil
	})
	if stored.Damaged(err) {
		c.report.add(Difference{What: Journal, Partition: c.p, Offset: -1, Detail: err.Error()})
		return nil
	}
	if err != nil && !errors.Is(err, errWhole) {
		return fmt.Errorf("read journal of partition %d: %w", c.p, err)
	}
	return err
}

// rowsOf reads the rows of ids, which are in order, and compares them key by key.
func (c *changedCheck) rowsOf(ctx context.Context, s Changed, ids []ledger.OutputID) error {
	rows := map[ledger.OutputID]store.ViewRow{}
	for len(ids) > 0 {
		n := min(rowsAtOnce, len(ids))
		for n < len(ids) && ids[n].Key == ids[n-1].Key {
			n++ // a whole key
		}
		clear(rows)
		err := s.Rows(ctx, c.p, ids[:n], func(r store.ViewRow) error {
			rows[r.ID] = r
			return nil
		})
		if errors.Is(err, store.ErrIntegrity) {
			c.report.add(damagedRow(c.p, err))
			return nil
		}
		if err != nil {
			return fmt.Errorf("read view rows of partition %d: %w", c.p, err)
		}
		c.report.Outputs += int64(len(rows))
		for part := ids[:n]; len(part) > 0; {
			k := 1
			for k < len(part) && part[k].Key == part[0].Key {
				k++
			}
			c.key(part[:k], rows)
			part = part[k:]
		}
		ids = ids[n:]
	}
	return nil
}

// key compares the given outputs of one key.
func (c *changedCheck) key(ids []ledger.OutputID, rows map[ledger.OutputID]store.ViewRow) {
	c.keys++
	e := c.oracle.Expected(ids[0].Key)
	wanted := outputs(e)
	for _, id := range ids {
		for len(wanted) > 0 && stored.CompareIDs(wanted[0].id, id) < 0 {
			wanted = wanted[1:]
		}
		var want []output
		if len(wanted) > 0 && wanted[0].id == id {
			want = wanted[:1]
		}
		var found []store.ViewRow
		var row *store.ViewRow
		if r, there := rows[id]; there {
			found = []store.ViewRow{r}
			row = &found[0]
		}
		before := c.report.Differences
		c.compareOutputs(e, want, found)
		if last, ok := c.decided[id]; ok && c.report.Differences == before {
			if detail := last.Fault(row); detail != "" {
				c.report.add(Difference{What: Row, Partition: c.p, ID: id, Offset: -1, Detail: detail, Actual: actual(row)})
			}
		}
	}
}

// stillBlocked lists the BLOCKED keys of a partition of which not every row is compared: those of the verified cut, and what became
// of those with records since. A view that has fallen behind the cut shows nothing of the latter.
func (r *run) stillBlocked(p ledger.Partition) {
	part := &r.prefix.parts[p]
	now := maps.Clone(part.since.blocked)
	if r.skipped[p] == "" || part.since.from < part.since.cut.Frontier {
		for key := range part.since.before {
			delete(now, key)
			if e := part.oracle.Expected(key); e.Status.Blocked {
				now[key] = e.Status
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(now), ledger.StockKey.Compare) {
		r.report.Blocked = append(r.report.Blocked, BlockedKey{Key: key, Status: now[key], Partition: p})
	}
}
