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
