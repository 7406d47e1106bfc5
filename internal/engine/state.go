package engine

import (
	"amends/internal/authority"
	"amends/internal/diff"
	"amends/internal/fold"
	"amends/internal/ledger"
	"amends/internal/manifest"
)

// state is everything that decides about one stock key: its evidence, its days and its last published trust status.
type state struct {
	newer, older *state // by last use
	txns         *authority.Transactions
	days         *fold.Days
	status       *ledger.Status // last published, nil before the first
	key          ledger.StockKey
	terms        manifest.Terms
	version      ledger.Version // of status
	id           ledger.KeyID
	rows         int64 // recorded decisions of the key
	held         int64 // those that the latest snapshot stands for
	bytes        int64 // as counted against the limit
	round        uint64
	known        bool // the key has a valid record
	changed      bool // since Snapshots looked last
}

// decide records one assertion, derives what follows and returns it: class, output versions appended to dst, and what
// was refolded. Nothing is published yet. It fails with ErrExhausted, and then the state is of no further use.
func (k *state) decide(dst []ledger.Change, a *ledger.Assertion) (ledger.Class, []ledger.Change, ledger.Work, error) {
	e := k.txns.Record(a.TxnID, a.Revision, a.Payload)
	if e.Class != ledger.Applied && e.Class != ledger.Conflict {
		return e.Class, dst, ledger.Work{}, nil // authority is what it was
	}
	moved := e.Before != e.After
	var touched fold.Touched
	if moved {
		touched = k.days.Move(e.Before, e.After)
	}
	status := k.evidenceFault()
	var work ledger.Work
	if wasBlocked := k.status != nil && k.status.Blocked; status == nil && (moved || wasBlocked) {
		if wasBlocked {
			touched = fold.Touched{} // published outputs are those of another authority (S7)
		}
		r, err := diff.Reconcile(dst, k.days, k.terms, touched)
		if err != nil {
			return e.Class, dst, work, err
		}
		dst = r.Changes
		work.RefoldedDays = r.Refolded
		if r.Started != 0 {
			work.RewindDays = max(0, int64(k.days.Last()-r.Started))
		}
		status = closeFault(r.Unrepresentable)
	}
	if status == nil {
		if k.status != nil && !k.status.Blocked {
			return e.Class, dst, work, nil
		}
		status = &ledger.Status{}
	}
	dst, err := diff.Status(dst, k.status, k.version, status)
	return e.Class, dst, work, err
}

// evidenceFault returns the status of a key that is blocked by ambiguous transactions or disagreeing counts, nil for
// any other (S7). While its payload is the published one it is that value.
func (k *state) evidenceFault() *ledger.Status {
	ambiguous := k.txns.Ambiguous()
	day, disagree := k.days.Disagreement()
	if ambiguous == 0 && !disagree {
		return nil
	}
	if k.publishedFault(ambiguous, day) {
		return k.status
	}
	named := min(ambiguous, ledger.MaxReasons)
	s := &ledger.Status{Blocked: true, More: int64(ambiguous - named), Reasons: make([]ledger.Reason, 0, named+1)}
	for i := range named {
		id, revision := k.txns.AmbiguousAt(i)
		s.Reasons = append(s.Reasons, ledger.Reason{Code: ledger.Ambiguous, TxnID: string(id), Revision: revision})
	}
	if disagree {
		s.Reasons = append(s.Reasons, ledger.Reason{Code: ledger.CountsDisagree, Day: day})
	}
	return s
}

// publishedFault reports whether the published status already names exactly this many ambiguous transactions, those of
// now, and this disagreeing day (0: none).
func (k *state) publishedFault(ambiguous int, day ledger.Day) bool {
	if k.status == nil || !k.status.Blocked {
		return false
	}
	named := min(ambiguous, ledger.MaxReasons)
	reasons := k.status.Reasons
	if day != 0 {
		if len(reasons) == 0 || reasons[len(reasons)-1] != (ledger.Reason{Code: ledger.CountsDisagree, Day: day}) {
			return false
		}
		reasons = reasons[:len(reasons)-1]
	}
	if len(reasons) != named || k.status.More != int64(ambiguous-named) {
		return false
	}
	for i := range reasons {
		id, revision := k.txns.AmbiguousAt(i)
		if r := &reasons[i]; r.Code != ledger.Ambiguous || r.Revision != revision || r.TxnID != string(id) {
			return false
		}
	}
	return true
}

// closeFault returns the status of a key whose close on day does not fit int64, nil where day is 0.
func closeFault(day ledger.Day) *ledger.Status {
	if day == 0 {
		return nil
	}
	return &ledger.Status{Blocked: true, Reasons: []ledger.Reason{{Code: ledger.Unrepresentable, Day: day}}}
}

// consistent reports whether what was published is what the evidence derives, as it is after every decision.
func (k *state) consistent() bool {
	if k.status == nil {
		return false
	}
	status := k.evidenceFault()
	if status == nil {
		r, err := diff.Reconcile(nil, k.days, k.terms, fold.Touched{})
		if status = closeFault(r.Unrepresentable); status == nil {
			return err == nil && len(r.Changes) == 0 && !k.status.Blocked
		}
	}
	return status.Equal(*k.status)
}

// size returns the memory the state takes up, within a few bytes.
func (k *state) size() int64 {
	const header = 400
	n := header + int64(len(k.key.Item)+len(k.key.Location)) + k.txns.Bytes() + k.days.Bytes()
	if k.status != nil {
		for i := range k.status.Reasons {
			n += 64 + int64(len(k.status.Reasons[i].TxnID))
		}
	}
	return n
}
