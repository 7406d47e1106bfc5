package store

import (
	"bytes"
	"slices"

	"amends/internal/ledger"
)

// CloneDecision returns a deep copy of d. What means nothing in d (S8: the assertion of a rejected record, the sequence
// and key id where there are none) is zero in the copy, as it is when read from a database.
func CloneDecision(d *ledger.Decision) ledger.Decision {
	c := *d
	c.Evidence, c.Changes = nil, nil
	if d.Evidence != nil {
		e := *d.Evidence
		e.Key, e.Value = bytes.Clone(e.Key), bytes.Clone(e.Value)
		c.Evidence = &e
	}
	if d.Rejection != 0 {
		c.Assertion, c.KeyID = ledger.Assertion{}, 0
	}
	if len(d.Changes) == 0 {
		c.Sequence = 0
		return c
	}
	c.Changes = slices.Clone(d.Changes)
	for i := range c.Changes {
		c.Changes[i].Status = CloneStatus(c.Changes[i].Status)
	}
	return c
}

// CloneStatus returns a deep copy of s, nil for nil.
func CloneStatus(s *ledger.Status) *ledger.Status {
	if s == nil {
		return nil
	}
	c := *s
	c.Reasons = slices.Clone(s.Reasons)
	return &c
}

// CloneRow returns a deep copy of r.
func CloneRow(r ViewRow) ViewRow {
	r.Status = CloneStatus(r.Status)
	return r
}

// CloneViolation returns a deep copy of v.
func CloneViolation(v Violation) Violation {
	v.Key, v.Value = bytes.Clone(v.Key), bytes.Clone(v.Value)
	return v
}
