package stored

import (
	"amends/internal/ledger"
	"amends/internal/store"
)

// Cut is where a partition was compared: the source below Frontier, and the view's position there. Server is the one that the
// compared snapshot was taken on.
type Cut struct {
	Server   store.Server
	Frontier ledger.Frontier
	Output   ledger.Frontier
	Sequence ledger.Sequence
	Cause    ledger.Offset // of the last output applied, -1 before the first
}

// CutOf returns the cut of a partition: its frontier if the view has applied everything, else the source offset after
// the cause of the last output applied, 0 if none (S10).
func CutOf(s store.PartitionState) ledger.Frontier {
	switch {
	case s.View == nil:
		return 0
	case s.View.Sequence == s.Owned.Sequence:
		return s.Owned.Frontier
	}
	return ledger.Frontier(s.View.Cause + 1)
}

// Moved says why a state does not go on from a verified cut, "" where it does. Positions go back only where a server lost what it
// had committed; the cut of a state also where the view lacks the outputs after records without any. The server is that of the
// snapshot's own connection: a promotion between two looks cannot hide.
func Moved(cut Cut, s store.PartitionState) string {
	v := s.View
	switch {
	case v == nil:
		return ""
	case s.Owned.Token.Server != cut.Server:
		return "the database is another server or timeline than at the verified cut"
	case s.Owned.Frontier < cut.Frontier, v.Sequence < cut.Sequence, v.Output < cut.Output, v.Cause < cut.Cause:
		return "a position is below the verified cut"
	case Ahead(s):
		return "the view is ahead of the worker"
	}
	return ""
}

// Ahead reports whether the view has applied outputs that the journal does not hold. A promoted standby that lost a committed
// tail leaves the topic, and so the view, ahead of the worker until it has decided them again (I7): nothing can be compared
// with outputs that are not decided yet.
func Ahead(s store.PartitionState) bool {
	return s.View != nil && s.View.Sequence > s.Owned.Sequence
}

// MissingPosition names the position rows that a bound partition lacks, "" if it has both.
func MissingPosition(s store.PartitionState) string {
	switch {
	case s.View == nil && s.Relay == nil:
		return "the rows of the relay's and the view's position are missing"
	case s.View == nil:
		return "the row of the view's position is missing"
	case s.Relay == nil:
		return "the row of the relay's position is missing"
	}
	return ""
}
