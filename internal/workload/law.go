package workload

import (
	"fmt"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

// Law names a way in which histories come about (performance.md).
type Law uint8

// The laws. Mixed is the random history, valid records only; Retail the synthetic retail history.
const (
	Mixed Law = iota
	Short
	LongShallow
	LongDeep
	Retail
)

var lawNames = [...]string{Mixed: "mixed", Short: "short", LongShallow: "long-shallow", LongDeep: "long-deep", Retail: "retail"}

// Laws returns the names of all laws.
func Laws() []string { return append([]string(nil), lawNames[:]...) }

// String returns the name of l, "" for none.
func (l Law) String() string {
	if int(l) < len(lawNames) {
		return lawNames[l]
	}
	return ""
}

// ParseLaw returns the law of that name, and false if there is none.
func ParseLaw(name string) (Law, bool) {
	for i, n := range lawNames {
		if n == name {
			return Law(i), true
		}
	}
	return 0, false
}

// StreamOptions describe a stream of Short, LongShallow or LongDeep. Zero Keys, Days or PerKey are the law's own.
type StreamOptions struct {
	Seed   uint64
	Keys   int // stock keys
	Days   int // days of history
	PerKey int // transactions a key in the history
	Law    Law
}

// Stream gives the records of a law one by one: first the history, new transactions only, in the order of days, then
// the measured stream without end: 88% new transactions on the current day, 10% corrections of which one in five moves
// the day by up to 3, 2% cancellations. The current day moves on as new transactions come, 5.4 a key and day. It holds
// 8 bytes a transaction.
type Stream struct {
	r       *Rand
	keys    []ledger.StockKey
	told    []brief // transaction n of key k is told[n*len(keys)+k]
	history int
	days    int
	perKey  int
	law     Law
}

// brief is what a stream keeps of a transaction.
type brief struct {
	day       uint16 // from the origin
	revision  uint16
	quantity  uint8
	issue     bool
	cancelled bool
}

const (
	streamOpening   = 500
	streamThreshold = 480
	recentDays      = 3
)

// NewStream returns a stream. The law must be Short, LongShallow or LongDeep.
func NewStream(o StreamOptions) *Stream {
	s := &Stream{r: NewRand(o.Seed), law: o.Law, days: o.Days, perKey: o.PerKey}
	keys, days, perKey := 200, 365, 2_000
	if o.Law == Short {
		keys, days, perKey = 1_000, 30, 162 // 5.4 a day
	}
	if o.Keys > 0 {
		keys = o.Keys
	}
	if s.days == 0 {
		s.days = days
	}
	if s.perKey == 0 {
		s.perKey = max(1, perKey*s.days/days)
	}
	for i := range keys {
		s.keys = append(s.keys, ledger.StockKey{Item: fmt.Sprintf("item-%04d", i), Location: fmt.Sprintf("place-%02d", i%7)})
	}
	s.history = keys * s.perKey
	s.told = make([]brief, 0, s.history+s.history/4)
	return s
}

// Setting returns the keys of s, listed, half on each of two partitions.
func (s *Stream) Setting() Setting {
	origin, _ := ledger.DateOf(2026, 1, 1)
	set := Setting{Origin: origin, Partitions: 2, Keys: make([]manifest.StockKey, len(s.keys))}
	for i, k := range s.keys {
		limit := int64(streamThreshold)
		set.Keys[i] = manifest.StockKey{Key: k, Partition: ledger.Partition(i % 2), Terms: manifest.Terms{OpeningBalance: streamOpening, Threshold: &limit}}
	}
	return set
}

// History returns how many records the history has: those that Next gives first.
func (s *Stream) History() int { return s.history }

// Next returns the next assertion.
func (s *Stream) Next() ledger.Assertion {
	if len(s.told) < s.history {
		return s.fresh()
	}
	switch n := s.r.Below(100); {
	case n < 10:
		if i, ok := s.hit(); ok {
			return s.correct(i)
		}
	case n < 12:
		if i, ok := s.hit(); ok {
			t := &s.told[i]
			t.revision++
			t.cancelled = true
			return s.assertion(i)
		}
	}
	return s.fresh()
}

// fresh begins a transaction of the next key in turn. Three of four are issues; receipts make up for them.
func (s *Stream) fresh() ledger.Assertion {
	i := len(s.told)
	t := brief{day: uint16(s.dayOf(i)), revision: 1, issue: s.r.Below(4) > 0}
	t.quantity = s.quantity(t.issue)
	s.told = append(s.told, t)
	return s.assertion(i)
}

func (s *Stream) quantity(issue bool) uint8 {
	if issue {
		return uint8(s.r.Between(1, 20))
	}
	return uint8(s.r.Between(21, 42))
}

// dayOf returns the day on which transaction i begins. A stream outlives the horizon on its last day.
func (s *Stream) dayOf(i int) int {
	return min(i/len(s.keys)*s.days/s.perKey, ledger.HorizonDays-1)
}

// hit chooses a transaction that is not cancelled: of the last days, or of all days for LongDeep.
func (s *Stream) hit() (int, bool) {
	low := 0
	if s.law != LongDeep {
		low = max(0, len(s.told)-len(s.keys)*max(1, s.perKey*recentDays/s.days))
	}
	for range 8 {
		if i := s.r.Between(low, len(s.told)-1); !s.told[i].cancelled && s.told[i].revision < 1<<16-1 {
			return i, true
		}
	}
	return 0, false
}

// correct gives transaction i a new quantity, and in one of five cases another day.
func (s *Stream) correct(i int) ledger.Assertion {
	t := &s.told[i]
	t.revision++
	for was := t.quantity; t.quantity == was; {
		t.quantity = s.quantity(t.issue)
	}
	if s.r.Below(5) == 0 {
		day := int(t.day) + pick(s.r, []int{-3, -2, -1, 1, 2, 3})
		t.day = uint16(min(max(day, 0), s.dayOf(len(s.told)-1)))
	}
	return s.assertion(i)
}

func (s *Stream) assertion(i int) ledger.Assertion {
	t := s.told[i]
	origin, _ := ledger.DateOf(2026, 1, 1)
	a := ledger.Assertion{Key: s.keys[i%len(s.keys)], TxnID: fmt.Sprintf("T-%06d", i/len(s.keys)+1), Revision: ledger.Revision(t.revision),
		Payload: ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Day: origin + ledger.Day(t.day), Quantity: ledger.Quantity(t.quantity)}}
	if t.issue {
		a.Payload.Kind = ledger.Issue
	}
	if t.cancelled {
		a.Payload = ledger.Payload{State: ledger.Cancelled}
	}
	return a
}
