package verify_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"amends/internal/ledger"
	"amends/internal/pipelinetest"
	"amends/internal/store"
	"amends/internal/verify"
)

// changedView is a store whose snapshots lie about what changed.
type changedView struct {
	verify.Snapshots
	decided func(*ledger.Decision) bool // false hides it
	row     func(*store.ViewRow) bool   // false drops it
	state   func(*store.PartitionState)
}

type changedSnapshot struct {
	store.Snapshot
	changedView
}

func (x changedView) Snapshot(ctx context.Context, fn func(store.Snapshot) error) error {
	return x.Snapshots.Snapshot(ctx, func(s store.Snapshot) error { return fn(changedSnapshot{s, x}) })
}

func (x changedSnapshot) Partitions(ctx context.Context) ([]store.PartitionState, error) {
	states, err := x.Snapshot.Partitions(ctx)
	for i := range states {
		if x.state != nil {
			x.state(&states[i])
		}
	}
	return states, err
}

func (x changedSnapshot) ViewRows(ctx context.Context, p ledger.Partition, fn func(store.ViewRow) error) error {
	panic("a cycle that compares what changed reads every row")
}

func (x changedSnapshot) Decided(ctx context.Context, p ledger.Partition, after, to ledger.Offset, fn func(*ledger.Decision) error) error {
	return x.Snapshot.(verify.Changed).Decided(ctx, p, after, to, func(d *ledger.Decision) error {
		if x.decided != nil && !x.decided(d) {
			return nil
		}
		return fn(d)
	})
}

func (x changedSnapshot) Rows(ctx context.Context, p ledger.Partition, ids []ledger.OutputID, fn func(store.ViewRow) error) error {
	return x.Snapshot.(verify.Changed).Rows(ctx, p, ids, func(r store.ViewRow) error {
		if x.row != nil && !x.row(&r) {
			return nil
		}
		return fn(r)
	})
}

func audited(t *testing.T, j *verify.Job, b *verify.Basis, full bool) *verify.Report {
	t.Helper()
	r, err := j.Audit(t.Context(), b, full)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// begun is a world with its first stage audited in full.
func begun(t *testing.T, stages ...[]string) (*pipelinetest.World, *verify.Job, *verify.Basis) {
	t.Helper()
	w := pipelinetest.New(t, "")
	for _, s := range stages {
		w.Values(t, s...)
	}
	w.Settle(t)
	j, b := job(w), &verify.Basis{}
	want(t, audited(t, j, b, true), verify.Pass)
	return w, j, b
}

// S10: a cycle compares every output that changed since the last, and nothing else: the correction of the worked example
// changes five, the cancelled last day one.
func TestS10AuditComparesWhatChanged(t *testing.T) {
	t.Parallel()
	w, j, b := begun(t, pipelinetest.Before)
	j.Store = changedView{Snapshots: w.NS}
	for _, c := range []struct {
		values  []string
		outputs int64
		end     ledger.Frontier
	}{{pipelinetest.Correction, 5, 4}, {nil, 0, 4}, {pipelinetest.CancelLastDay, 1, 5}, {pipelinetest.Correction, 0, 6}} {
		if c.values != nil {
			w.Values(t, c.values...)
			w.Settle(t)
		}
		r := audited(t, j, b, false)
		want(t, r, verify.Pass)
		if r.Outputs != c.outputs || r.Boundary[0].SourceEnd != c.end || !r.Parts[0].Verified || r.Parts[0].Cut.Frontier != c.end {
			t.Errorf("%d outputs compared at %+v, want %d at %d; %+v", r.Outputs, r.Boundary, c.outputs, c.end, r.Parts)
		}
	}
}

// S10: what differs is found in the cycle after it changed, whoever conceals it, in every cycle until it is mended; the
// verified cut stays where it was.
func TestS10AuditFindsWhatChangedWrongly(t *testing.T) {
	t.Parallel()
	hide := func(*ledger.Decision) bool { return false }
	for name, c := range map[string]struct {
		view changedView
		what verify.What
		id   ledger.OutputID
	}{
		"a value": {changedView{row: on(at(ledger.Balance, 2), func(r *store.ViewRow) { r.Close = 51; redo(r) })}, verify.Value, at(ledger.Balance, 2)},
		"a value, concealed by the journal": {changedView{decided: hide, row: on(at(ledger.Balance, 2), func(r *store.ViewRow) { r.Close = 51; redo(r) })},
			verify.Value, at(ledger.Balance, 2)},
		"a row that was not replaced":     {changedView{row: func(r *store.ViewRow) bool { return r.ID != at(ledger.Alert, 2) }}, verify.Missing, at(ledger.Alert, 2)},
		"a tombstone that is not there":   {changedView{row: func(r *store.ViewRow) bool { return r.ID != at(ledger.Alert, 3) }}, verify.Row, at(ledger.Alert, 3)},
		"another version":                 {changedView{row: on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Version = 3; redo(r) })}, verify.Row, at(ledger.Balance, 1)},
		"another cause":                   {changedView{row: on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Cause.TxnID = "T-9"; redo(r) })}, verify.Row, at(ledger.Balance, 1)},
		"a row that contradicts itself":   {changedView{row: on(at(ledger.Balance, 3), func(r *store.ViewRow) { r.Digest++ })}, verify.Row, at(ledger.Balance, 3)},
		"an alert that was not withdrawn": {changedView{row: on(at(ledger.Alert, 3), func(r *store.ViewRow) { r.Present, r.Previous, r.Close, r.Threshold = true, 80, 50, 60; redo(r) })}, verify.Unexpected, at(ledger.Alert, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, j, b := begun(t, pipelinetest.Before)
			w.Values(t, pipelinetest.Correction...)
			w.Settle(t)
			c.view.Snapshots = w.NS
			for range 2 {
				j.Store = c.view
				r := audited(t, j, b, false)
				want(t, r, verify.Drift)
				if r.Differences != 1 || r.First.What != c.what || r.First.ID != c.id || r.Parts[0].Status != verify.Drift || r.Parts[0].Cut.Frontier != 3 {
					t.Errorf("%d differences, first %+v, parts %+v", r.Differences, r.First, r.Parts)
				}
			}
			j.Store = w.NS
			r := audited(t, j, b, false)
			want(t, r, verify.Pass)
			if r.Parts[0].Cut.Frontier != 4 {
				t.Errorf("%+v", r.Parts)
			}
		})
	}
}

// What changed and changed back between two cycles gives the same outputs, in other versions: these are compared too.
func TestS10AuditComparesWhatChangedBack(t *testing.T) {
	t.Parallel()
	w, j, b := begun(t, pipelinetest.Before)
	w.Values(t, pipelinetest.Correction...)
	w.Values(t, strings.Replace(pipelinetest.Before[0], `"revision":1`, `"revision":3`, 1))
	w.Settle(t)
	j.Store = changedView{Snapshots: w.NS, row: on(at(ledger.Balance, 2), func(r *store.ViewRow) { r.Version = 2; redo(r) })}
	r := audited(t, j, b, false)
	want(t, r, verify.Drift)
	if r.Differences != 1 || r.First.ID != at(ledger.Balance, 2) || r.First.Detail != "the journal decided version 3 of it, the view holds version 2" {
		t.Errorf("%d differences, first %+v", r.Differences, r.First)
	}
	j.Store = changedView{Snapshots: w.NS}
	r = audited(t, j, b, false)
	want(t, r, verify.Pass)
	if r.Outputs != 5 {
		t.Errorf("%d outputs compared", r.Outputs)
	}
}

// The BLOCKED keys of a cycle are those of the last verified cut and what became of them since.
func TestS10AuditKnowsWhoIsBlocked(t *testing.T) {
	t.Parallel()
	w, j, b := begun(t, pipelinetest.Before)
	j.Store = changedView{Snapshots: w.NS}
	other := strings.Replace(pipelinetest.Before[0], ":100}", ":90}", 1)
	w.Values(t, other)
	w.Settle(t)
	for range 2 { // once changed, once not
		r := audited(t, j, b, false)
		want(t, r, verify.Blocked)
		if len(r.Blocked) != 1 || r.Blocked[0].Key != widget || r.Parts[0].Status != verify.Blocked || r.Parts[1].Status != verify.Pass || !r.Parts[0].Verified {
			t.Errorf("%+v %+v", r.Blocked, r.Parts)
		}
	}
	// Made READY again, every output of the key is compared: while it was BLOCKED none was certified.
	w.Values(t, strings.Replace(pipelinetest.Before[0], `"revision":1`, `"revision":2`, 1))
	w.Settle(t)
	r := audited(t, j, b, false)
	want(t, r, verify.Pass)
	if r.Outputs != 5 || len(r.Blocked) != 0 {
		t.Errorf("%d outputs, %+v", r.Outputs, r.Blocked)
	}
}

const twoKeys = `{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,
	"stock_keys":[{"item":"widget","location":"berlin","partition":0,"opening_balance":0,"threshold":60},
	{"item":"widget","location":"paris","partition":1,"opening_balance":0,"threshold":60}]}`

// S9, S10: a stopped partition makes the cycle INCOMPLETE; the others are compared, and their verified cuts go on.
func TestS10AuditGoesOnBesideAStoppedPartition(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"full": true, "changed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pipelinetest.New(t, twoKeys)
			w.Values(t, pipelinetest.Before...)
			w.Settle(t)
			j, b := job(w), &verify.Basis{}
			want(t, audited(t, j, b, true), verify.Pass)
			w.Values(t, strings.ReplaceAll(pipelinetest.Before[0], "berlin", "paris"))
			w.Settle(t)
			w.Stop(t, 0, store.Violation{Reason: "test", Offset: 5})
			r := audited(t, j, b, full)
			want(t, r, verify.Incomplete)
			if len(r.Reasons) != 1 || r.Reasons[0].Code != verify.PartitionStopped || r.Reasons[0].Partition != 0 {
				t.Errorf("%+v", r.Reasons)
			}
			if p := r.Parts[0]; p.Status != verify.Incomplete || p.Verified || p.Cut.Frontier != 3 {
				t.Errorf("%+v", p)
			}
			if p := r.Parts[1]; p.Status != verify.Pass || !p.Verified || p.Cut.Frontier != 1 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// S10: a view that falls behind the verified cut (records without outputs came last) leaves it where it is and is no finding.
func TestS10AuditWaitsForAViewBehindTheVerifiedCut(t *testing.T) {
	t.Parallel()
	w, j, b := begun(t, pipelinetest.Before, pipelinetest.Before[:1]) // the last one is a duplicate
	w.Values(t, pipelinetest.Correction...)
	w.Work(t)
	r := audited(t, j, b, false)
	want(t, r, verify.Pass)
	if p := r.Parts[0]; p.Verified || p.Status != "" || p.Cut.Frontier != 4 || r.Boundary[0].SourceEnd != 4 {
		t.Errorf("%+v", p)
	}
	w.Settle(t)
	r = audited(t, j, b, false)
	want(t, r, verify.Pass)
	if p := r.Parts[0]; !p.Verified || p.Cut.Frontier != 5 || r.Outputs != 5 {
		t.Errorf("%+v", p)
	}
}

// S10: the BLOCKED keys of a partition that is left at its verified cut keep the cycle from passing, until the view shows that they
// are READY again.
func TestS10AuditOfABlockedKeyWithAViewBehind(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	w.Values(t, pipelinetest.Before...)
	w.Values(t, strings.Replace(pipelinetest.Before[0], ":100}", ":90}", 1)) // a conflict
	w.Values(t, pipelinetest.Before[0])                                      // a duplicate: no output
	w.Settle(t)
	j, b := job(w), &verify.Basis{}
	want(t, audited(t, j, b, true), verify.Blocked)
	w.Values(t, strings.Replace(pipelinetest.Before[0], `"revision":1`, `"revision":2`, 1))
	w.Work(t)
	r := audited(t, j, b, false)
	want(t, r, verify.Blocked)
	if p := r.Parts[0]; p.Verified || p.Status != "" || p.Cut.Frontier != 5 || len(r.Blocked) != 1 || r.Blocked[0].Key != widget {
		t.Errorf("%+v, blocked %+v", p, r.Blocked)
	}
	w.Settle(t)
	want(t, audited(t, j, b, false), verify.Pass)
}

// A state that was saved is gone on from: nothing below it is read again, and everything past the verified cut is compared.
func TestS10AuditResumes(t *testing.T) {
	t.Parallel()
	w, j, b := begun(t, pipelinetest.Before)
	frontier, state, ok := b.State(0)
	if !ok || frontier != 3 {
		t.Fatalf("state at %d, %t", frontier, ok)
	}
	w.Values(t, pipelinetest.Correction...)
	w.Settle(t)
	r := audited(t, j, b, false)
	want(t, r, verify.Pass)
	w.Values(t, pipelinetest.CancelLastDay...)
	w.Settle(t)
	var open atomic.Bool
	var starts, inside atomic.Int32
	source := j.Source
	j.Source = func() (verify.Reader, error) {
		x, err := source()
		return counted{x, &open, &starts, &inside}, err
	}
	b = &verify.Basis{}
	for p, cut := range []verify.Cut{r.Parts[0].Cut, r.Parts[1].Cut} {
		if p == 1 {
			frontier, state, _ = 0, nil, false
			empty := &verify.Basis{}
			want(t, audited(t, job(pipelinetest.New(t, "")), empty, true), verify.Pass)
			_, state, _ = empty.State(1)
		}
		if err := b.Resume(w.Manifest.Config, ledger.Partition(p), frontier, state, cut); err != nil {
			t.Fatal(err)
		}
	}
	j.Store = changedView{Snapshots: w.NS}
	r = audited(t, j, b, false)
	want(t, r, verify.Pass)
	if starts.Load() != 0 || r.Parts[0].Cut.Frontier != 5 || r.SourceRecords != 5 {
		t.Errorf("read from the start %d times; %+v", starts.Load(), r)
	}
	// Past the saved state everything that changed is compared again: 5 outputs of the correction, one of them cancelled since.
	if r.Outputs != 5 {
		t.Errorf("%d outputs compared", r.Outputs)
	}
	if err := b.Resume(w.Manifest.Config, 0, 9, state, verify.Cut{Frontier: 8}); err == nil {
		t.Error("a state past the verified cut is gone on from")
	}
	if err := b.Resume(w.Manifest.Config, 0, 0, []byte("x"), verify.Cut{}); err == nil {
		t.Error("what is no state is gone on from")
	}
}

// I7, S10: after a failover that lost a committed tail the topic, and with it the view, is ahead of the worker until it has
// decided the same again. A deep verification does not pass while I7 cannot be shown, and never calls it drift.
// Shows I19.
func TestI7ViewAheadOfTheWorkerIsNoDrift(t *testing.T) {
	t.Parallel()
	for name, quiesced := range map[string]bool{"quiesced": true, "live": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pipelinetest.New(t, "")
			w.Values(t, pipelinetest.Before...)
			w.Settle(t)
			standby := w.DB.Standby()
			w.Values(t, pipelinetest.Correction...)
			w.Settle(t)
			w.DB.PromoteStandby(standby)
			w.View(t)
			j := job(w)
			j.Live, j.Deep = !quiesced, true
			if quiesced { // it waits
				j.Timeout = short
			}
			r := run(t, j)
			j.Timeout = budget
			want(t, r, verify.Incomplete)
			if len(r.Reasons) != 1 || r.Reasons[0].Code != verify.SourceNotProcessed || r.Reasons[0].Partition != 0 || r.Reasons[0].Offset != 3 || r.Reasons[0].Sequence != 5 {
				t.Errorf("%+v", r.Reasons)
			}
			if !quiesced { // what can be compared is: a row that differs is drift all the same
				j.Store = tampered{Snapshots: w.NS, row: on(at(ledger.Balance, 2), func(r *store.ViewRow) { r.Close = 51; redo(r) })}
				want(t, run(t, j), verify.Drift)
				j.Store = w.NS
				j.Deep = false
				want(t, run(t, j), verify.Pass) // I11 holds at the cut
				j.Deep = true
			}
			b := &verify.Basis{}
			want(t, audited(t, job(w), b, false), verify.Pass)
			w.Settle(t)
			want(t, run(t, j), verify.Pass)
			want(t, audited(t, job(w), b, false), verify.Pass)
		})
	}
}

// movedCycle runs a cycle that must refuse to compare only what changed, for the reason given of partition 0.
func movedCycle(t *testing.T, j *verify.Job, b *verify.Basis, why string) {
	t.Helper()
	r, err := j.Audit(t.Context(), b, false)
	var moved *verify.MovedError
	if !errors.As(err, &moved) || r != nil || moved.Partition != 0 || !strings.Contains(moved.Why, why) {
		t.Fatalf("%+v, %v; want %q", r, err, why)
	}
	if b.Has(0) {
		t.Error("partition 0 is gone on from all the same")
	}
}

// I7, I19: nor does an audit take a journal that lost its tail for what the view should hold, or pass while it cannot be shown.
func TestI7AuditOfAViewAheadOfTheWorker(t *testing.T) {
	t.Parallel()
	w, j, b := begun(t, pipelinetest.Before)
	w.Values(t, pipelinetest.Correction...)
	w.Settle(t)
	standby := w.DB.Standby()
	w.Values(t, strings.ReplaceAll(strings.Replace(pipelinetest.Before[0], `"revision":1`, `"revision":3`, 1), ":100}", ":90}"))
	w.Settle(t)
	w.DB.PromoteStandby(standby)
	w.View(t)
	movedCycle(t, j, b, "another server")
	r := audited(t, j, b, true)
	want(t, r, verify.Incomplete)
	if r.Parts[0].Verified || r.Parts[0].Stopped || b.Has(0) || !b.Has(1) {
		t.Errorf("%+v", r.Parts)
	}
	w.Settle(t)
	want(t, audited(t, j, b, true), verify.Pass)
	want(t, audited(t, j, b, false), verify.Pass)
}

// S10, S12: a promoted standby lost what was verified last, and the pipeline caught up past it before the next cycle. Rows below the
// verified cut were written again: nothing but a full cycle looks at them.
func TestS10AuditLooksBelowTheCutOnAnotherServer(t *testing.T) {
	t.Parallel()
	w, j, b := begun(t, pipelinetest.Before)
	standby := w.DB.Standby()
	w.Values(t, pipelinetest.Correction...)
	w.Settle(t)
	want(t, audited(t, j, b, false), verify.Pass)
	w.DB.PromoteStandby(standby)
	w.Values(t, pipelinetest.CancelLastDay...)
	w.Settle(t)
	j.Store = tampered{Snapshots: w.NS, row: on(at(ledger.Balance, 1), func(r *store.ViewRow) { r.Close = 71; redo(r) })}
	movedCycle(t, j, b, "another server or timeline")
	for range 2 {
		r := audited(t, j, b, true)
		want(t, r, verify.Drift)
		if r.Differences != 2 || r.First.What != verify.Value || r.First.ID != at(ledger.Balance, 1) { // and the fold of the topic says so
			t.Errorf("%d differences, first %+v", r.Differences, r.First)
		}
	}
	j.Store = w.NS
	want(t, audited(t, j, b, true), verify.Pass)
	want(t, audited(t, j, b, false), verify.Pass)
}

// S10: whatever says that the state of a partition does not go on from its verified cut makes the next cycle a full one; the other
// partition's cut is kept, and afterwards what changed is enough again.
func TestS10AuditKnowsWhatDoesNotGoOn(t *testing.T) {
	t.Parallel()
	w, j, b := begun(t, pipelinetest.Before)
	for name, c := range map[string]struct {
		state func(*store.PartitionState)
		why   string
	}{
		"timeline":                 {func(s *store.PartitionState) { s.Owned.Token.Server.Timeline++ }, "another server or timeline"},
		"system":                   {func(s *store.PartitionState) { s.Owned.Token.Server.System++ }, "another server or timeline"},
		"frontier":                 {func(s *store.PartitionState) { s.Owned.Frontier-- }, "below the verified cut"},
		"view's sequence":          {func(s *store.PartitionState) { s.View.Sequence-- }, "below the verified cut"},
		"view's output frontier":   {func(s *store.PartitionState) { s.View.Output-- }, "below the verified cut"},
		"view's cause":             {func(s *store.PartitionState) { s.View.Cause-- }, "below the verified cut"},
		"view ahead of the worker": {func(s *store.PartitionState) { s.Owned.Sequence-- }, "ahead of the worker"},
	} {
		j.Store = changedView{Snapshots: w.NS, state: func(s *store.PartitionState) {
			if s.Partition == 0 {
				c.state(s)
			}
		}}
		movedCycle(t, j, b, c.why)
		if !b.Has(1) {
			t.Errorf("%s: partition 1 is forgotten too", name)
		}
		j.Store = w.NS
		want(t, audited(t, j, b, true), verify.Pass)
		j.Store = changedView{Snapshots: w.NS}
		want(t, audited(t, j, b, false), verify.Pass)
	}
}

// dropping is an output topic that lacks one record.
type dropping struct {
	verify.Reader
	at ledger.Offset
}

func (d dropping) ReadTo(ctx context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error) {
	return d.Reader.ReadTo(ctx, p, from, end, func(r ledger.SourceRecord) error {
		if p == 0 && r.Offset == d.at {
			return nil
		}
		return fn(r)
	})
}

// I7: a sequence that the topic lacks is found and named where it is due.
// Shows I7.
func TestI7LostPublicationIsNamed(t *testing.T) {
	t.Parallel()
	w := worked(t)
	for _, c := range []struct {
		at, offset ledger.Offset
		says       string
	}{
		{2, 3, "sequence 3 comes where 2 is due: a publication was lost"},
		{9, 10, "sequence 10 comes where 9 is due: a publication was lost"},
		{10, 10, "the topic does not hold the receipt of sequences "},
	} {
		j := job(w)
		j.Deep = true
		output := j.Output
		j.Output = func() (verify.Reader, error) {
			r, err := output()
			return dropping{r, c.at}, err
		}
		r := run(t, j)
		want(t, r, verify.Drift)
		if r.First.What != verify.Topic || r.First.Offset != int64(c.offset) || !strings.HasPrefix(r.First.Detail, c.says) {
			t.Errorf("first %+v", r.First)
		}
	}
}
