package store

import (
	"time"

	"amends/internal/ledger"
)

// Verification is one finished verification or audit cycle, kept for people and for status (S10). Status is one of
// the names of S10's table. Boundary holds the cut of each partition that has one. Detail says what differed first, or is empty.
type Verification struct {
	Started     time.Time
	Finished    time.Time // by the database's clock; ignored when recorded
	Status      string
	Detail      string
	Boundary    []Cut
	Keys        int64
	Outputs     int64
	Differences int64
	Quiesced    bool
	Deep        bool
	Audit       bool
}

// Bounds of what audits leave among the verifications, however often a cycle runs and whatever it finds.
const (
	SameAuditEvery = time.Minute // between two rows that say the same
	MaxAuditRows   = 1_000       // older ones go, but for the newest that came to a result, and the newest deep one that did
)

// Same reports whether two audit cycles say the same: their status, how it was found, and what differed first.
func (v *Verification) Same(w *Verification) bool {
	return v.Audit && w.Audit && v.Deep == w.Deep && v.Differences == w.Differences && v.Status == w.Status && v.Detail == w.Detail
}

// Cut is the source frontier at which a partition was compared (S10).
type Cut struct {
	Partition ledger.Partition `json:"partition"`
	Frontier  ledger.Frontier  `json:"frontier"`
}

// statuses are the names of S10 in its order.
var statuses = [...]string{"UNAVAILABLE", "INCOMPLETE", "DRIFT", "BLOCKED", "PASS"}

// ValidStatus reports whether s is a status of S10.
func ValidStatus(s string) bool {
	for _, n := range statuses {
		if n == s {
			return true
		}
	}
	return false
}
