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
// the order of S8. What a published alert said follows from the published closes (S6). Outside the touched days the two must agree as far as they did not change; zero touches everything.
func Reconcile(dst []ledger.Change, days *fold.Days, terms manifest.Terms, touched fold.Touched) (Result, error) {
	start := len(dst)
	c := days.Refold(terms.OpeningBalance, touched)
	for c.Next() {
		s := &c.Step
		balance := s.Active != s.Present || s.Active && s.Close != s.Old
		raised := s.Active && terms.Threshold != nil && s.Previous >= *terms.Threshold && s.Close < *terms.Threshold
		alert := raised != s.Alerted || raised && (s.Previous != s.Was || s.Close != s.Old)
		if !balance && !alert {
			continue
		}
		balanceVersion, alertVersion := c.Versions()
		if balance && balanceVersion == ledger.MaxCounter || alert && alertVersion == ledger.MaxCounter {
			return Result{Changes: dst[:start]}, ErrExhausted
		}
		if balance {
			dst = append(dst, ledger.Change{Kind: ledger.Balance, Day: s.Day, Version: balanceVersion + 1, Present: s.Active, Close: s.Close})
			withdraw(&dst[len(dst)-1])
		}
		if alert {
			dst = append(dst, ledger.Change{Kind: ledger.Alert, Day: s.Day, Version: alertVersion + 1, Present: raised, Close: s.Close, Previous: s.Previous})
			withdraw(&dst[len(dst)-1])
		}
	}
	r := Result{Changes: dst, Refolded: c.Refolded(), Started: c.Started(), Unrepresentable: c.Unrepresentable()}
	if r.Unrepresentable != 0 {
		r.Changes = dst[:start]
	}
	return r, nil
}

// withdraw clears the payload of a change that is not present.
func withdraw(c *ledger.Change) {
	if !c.Present {
		c.Close, c.Previous = 0, 0
	}
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
