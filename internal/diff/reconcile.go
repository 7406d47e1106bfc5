package diff

import (
	"errors"

	"amends/internal/fold"
	"amends/internal/ledger"
	"amends/internal/manifest"
)

// ErrExhausted is returned where a version or sequence would pass 2^63-1 (S8). The caller commits nothing of that
// decision and stops (exit 1).
var ErrExhausted = errors.New("counter exhausted")

// Result is what a reconciliation found. Where Unrepresentable is a day, the earliest whose close does not fit
// int64, nothing changes and Changes is as it was given.
type Result struct {
	Changes         []ledger.Change
	Refolded        int64      // closes computed
	Started         ledger.Day // the first day looked at, 0 if none
	Unrepresentable ledger.Day // 0 if every close fits
}

// Reconcile appends to dst the balances and alerts of a key whose derived state differs from the published one, in
// the order of S8. Outside the touched days the two must agree as far as they did not change; zero touches everything.
func Reconcile(dst []ledger.Change, days *fold.Days, terms manifest.Terms, touched fold.Touched) (Result, error) {
	start := len(dst)
	c := days.Refold(terms.OpeningBalance, touched)
	ok := true
	for c.Next() {
		s := &c.Step
		dst, ok = balance(dst, s)
		if ok && (terms.Threshold != nil || s.Published.Alerted) {
			dst, ok = alert(dst, s, terms.Threshold)
		}
		if !ok {
			return Result{Changes: dst[:start]}, ErrExhausted
		}
	}
	r := Result{Changes: dst, Refolded: c.Refolded(), Started: c.Started(), Unrepresentable: c.Unrepresentable()}
	if r.Unrepresentable != 0 {
		r.Changes = dst[:start]
	}
	return r, nil
}

// balance appends the balance of a day where it changed; false means that its version is exhausted.
func balance(dst []ledger.Change, s *fold.Step) ([]ledger.Change, bool) {
	old := &s.Published
	switch {
	case s.Active == old.Present && (!s.Active || s.Close == old.Close):
		return dst, true
	case old.Balance == ledger.MaxCounter:
		return dst, false
	case !s.Active:
		return append(dst, ledger.Change{Kind: ledger.Balance, Day: s.Day, Version: old.Balance + 1}), true
	}
	return append(dst, ledger.Change{Kind: ledger.Balance, Day: s.Day, Version: old.Balance + 1, Present: true, Close: s.Close}), true
}

// alert appends the alert of a day where it changed (S6); false means that its version is exhausted. What the published
// one said follows from the published closes.
func alert(dst []ledger.Change, s *fold.Step, threshold *int64) ([]ledger.Change, bool) {
	old := &s.Published
	raised := s.Active && threshold != nil && s.Previous >= *threshold && s.Close < *threshold
	switch {
	case !raised && !old.Alerted:
		return dst, true
	case raised && old.Alerted && s.Previous == s.Was && s.Close == old.Close:
		return dst, true
	case old.Alert == ledger.MaxCounter:
		return dst, false
	case !raised:
		return append(dst, ledger.Change{Kind: ledger.Alert, Day: s.Day, Version: old.Alert + 1}), true
	}
	return append(dst, ledger.Change{Kind: ledger.Alert, Day: s.Day, Version: old.Alert + 1, Present: true,
		Close: s.Close, Previous: s.Previous}), true
}

// Status appends the trust status where it changed: published is the last one with its version, 0 and nil before the
// first (S7). It fails with ErrExhausted.
func Status(dst []ledger.Change, published *ledger.Status, version ledger.Version, derived *ledger.Status) ([]ledger.Change, error) {
	switch {
	case published != nil && published.Equal(*derived):
		return dst, nil
	case version == ledger.MaxCounter:
		return dst, ErrExhausted
	}
	return append(dst, ledger.Change{Kind: ledger.TrustStatus, Version: version + 1, Present: true, Status: derived}), nil
}
