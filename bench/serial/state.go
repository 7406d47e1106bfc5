package serial

import (
	"cmp"
	"slices"

	"amends/internal/ledger"
)

// State is everything of one stock key, kept as one JSON value.
type State struct {
	Transactions map[string]Transaction `json:"transactions"`
	Outputs      []Output               `json:"outputs"`
	Announced    bool                   `json:"announced"` // the READY status was emitted
}

// Transaction is the authoritative assertion of a transaction.
type Transaction struct {
	Revision ledger.Revision `json:"revision"`
	Day      ledger.Day      `json:"day"`
	Delta    int64           `json:"delta"` // units, negative for an issue, 0 when cancelled
	Active   bool            `json:"active"`
}

// Output is the last emitted version of a balance or an alert.
type Output struct {
	Kind     ledger.OutputKind `json:"kind"`
	Day      ledger.Day        `json:"day"`
	Version  ledger.Version    `json:"version"`
	Present  bool              `json:"present"`
	Close    int64             `json:"close"`
	Previous int64             `json:"previous"`
}

// apply records an assertion and reports whether it became the authority.
func (s *State) apply(a ledger.Assertion) bool {
	old, known := s.Transactions[a.TxnID]
	if known && a.Revision <= old.Revision {
		return false
	}
	t := Transaction{Revision: a.Revision, Day: a.Payload.Day, Delta: a.Payload.Units(), Active: a.Payload.State == ledger.Active}
	if s.Transactions == nil {
		s.Transactions = make(map[string]Transaction)
	}
	s.Transactions[a.TxnID] = t
	return true
}

// refold derives every output of the key from its transactions and returns those that changed, in emission order.
func (s *State) refold(opening int64, threshold *int64) []Output {
	deltas := make(map[ledger.Day]int64)
	for _, t := range s.Transactions {
		if t.Active {
			deltas[t.Day] += t.Delta
		}
	}
	days := make([]ledger.Day, 0, len(deltas))
	for d := range deltas {
		days = append(days, d)
	}
	slices.Sort(days)
	derived := make(map[outputKey]Output, len(days))
	previous := opening
	for _, d := range days {
		closing := previous + deltas[d]
		derived[outputKey{d, ledger.Balance}] = Output{Kind: ledger.Balance, Day: d, Close: closing}
		if threshold != nil && previous >= *threshold && closing < *threshold {
			derived[outputKey{d, ledger.Alert}] = Output{Kind: ledger.Alert, Day: d, Close: closing, Previous: previous}
		}
		previous = closing
	}
	return s.diff(derived)
}

type outputKey struct {
	day  ledger.Day
	kind ledger.OutputKind
}

// diff compares derived with the emitted outputs, gives the changed ones their next version and keeps them.
func (s *State) diff(derived map[outputKey]Output) []Output {
	var changed []Output
	for i := range s.Outputs {
		o := &s.Outputs[i]
		k := outputKey{o.Day, o.Kind}
		d, present := derived[k]
		delete(derived, k)
		if present == o.Present && (!present || d.Close == o.Close && d.Previous == o.Previous) {
			continue
		}
		o.Version++
		o.Present, o.Close, o.Previous = present, d.Close, d.Previous
		changed = append(changed, *o)
	}
	for _, d := range derived {
		d.Version, d.Present = 1, true
		s.Outputs = append(s.Outputs, d)
		changed = append(changed, d)
	}
	slices.SortFunc(changed, func(a, b Output) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Kind, b.Kind))
	})
	return changed
}
