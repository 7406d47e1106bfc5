package store

import "amends/internal/ledger"

// MaxSamples is how many samples a partition keeps (design, storage).
const MaxSamples = 32

// Sample is one commit that held decisions. All numbers are 0 or more; times in nanoseconds.
type Sample struct {
	Work      ledger.Work
	Lock      int64
	PreCommit int64
}

// Measurements are a partition's: Last is nil before the first; Total and Commits saturate at 2^63-1; Recent
// holds the latest MaxSamples, oldest first. A rollback, a fence, a bare move and a replay leave them alone.
type Measurements struct {
	Last    *Sample
	Recent  []Sample
	Total   Sample
	Commits int64
}

// Add records one commit: it becomes Last, joins Recent and adds to Total and Commits, which saturate.
func (m *Measurements) Add(s Sample) {
	last := s
	m.Last = &last
	m.Recent = append(m.Recent, s)
	if len(m.Recent) > MaxSamples {
		m.Recent = append([]Sample(nil), m.Recent[len(m.Recent)-MaxSamples:]...)
	}
	t := &m.Total
	t.Work.Records = saturate(t.Work.Records, s.Work.Records)
	t.Work.Accepted = saturate(t.Work.Accepted, s.Work.Accepted)
	t.Work.Rejected = saturate(t.Work.Rejected, s.Work.Rejected)
	t.Work.RewindDays = max(t.Work.RewindDays, s.Work.RewindDays)
	t.Work.RefoldedDays = saturate(t.Work.RefoldedDays, s.Work.RefoldedDays)
	t.Work.Changed = saturate(t.Work.Changed, s.Work.Changed)
	t.Work.Withdrawn = saturate(t.Work.Withdrawn, s.Work.Withdrawn)
	t.Lock = saturate(t.Lock, s.Lock)
	t.PreCommit = saturate(t.PreCommit, s.PreCommit)
	m.Commits = saturate(m.Commits, 1)
}

// Clone returns a deep copy of m.
func (m Measurements) Clone() Measurements {
	if m.Last != nil {
		last := *m.Last
		m.Last = &last
	}
	m.Recent = append([]Sample(nil), m.Recent...)
	return m
}

func saturate(a, b int64) int64 {
	if a > ledger.MaxCounter-b {
		return ledger.MaxCounter
	}
	return a + b
}
