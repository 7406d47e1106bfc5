package intake

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"amends/internal/ledger"
	"amends/internal/mapping"
	"amends/internal/tabular"
)

// Limits of a survey.
const (
	Shown      = 10      // records and unknown keys that are shown
	MaxRepeats = 1 << 22 // transactions among which repetitions are looked for, about 80 MB
	maxKeys    = 1 << 20 // stock keys that are told apart
)

// Survey is what a pass found in a file. A nil Survey takes note of nothing.
type Survey struct {
	LeftOut     map[string]int64 // rows that say nothing, by the part of the mapping that says so
	Kinds       map[string]int64 // records by kind, "cancelled" among them
	seen        *mapping.Tally
	keys        *mapping.Tally
	unknown     map[ledger.StockKey]struct{}
	Digest      string // SHA-256 of the file, "" before its end
	First       []Sample
	buffer      []byte
	Rows        int64
	Records     int64
	Keys        int64 // distinct ones
	Same        int64 // records that were said before in the same words: they will be DUPLICATE
	Foreign     int64 // rows whose bytes look like UTF-8 in a file that is not
	ForeignLine int64 // the first of them
	FirstDay    ledger.Day
	LastDay     ledger.Day
	MoreKeys    bool // there are more keys than were counted
	Unchecked   bool // repetitions were looked for among the first MaxRepeats transactions only
}

// Sample is one record as it would be published.
type Sample struct {
	Value     []byte
	Line      int64
	Partition int32
	Routed    bool // the namespace has the key
}

// newSurvey returns an empty survey; repeats says whether transactions that are said twice are looked for.
func newSurvey(repeats bool) *Survey {
	s := &Survey{LeftOut: map[string]int64{}, Kinds: map[string]int64{}, keys: &mapping.Tally{}, unknown: map[ledger.StockKey]struct{}{}}
	if repeats {
		s.seen = &mapping.Tally{}
	}
	return s
}

// forget gives back the memory that the pass needed.
func (s *Survey) forget() { s.seen, s.keys, s.buffer = nil, nil, nil }

// UnknownKeys returns the first keys that the namespace does not have, in the order of their names.
func (s *Survey) UnknownKeys() []ledger.StockKey {
	return slices.SortedFunc(maps.Keys(s.unknown), ledger.StockKey.Compare)
}

func (s *Survey) row(r tabular.Row) {
	if s == nil {
		return
	}
	s.Rows++
	if r.Foreign {
		if s.Foreign == 0 {
			s.ForeignLine = r.Line
		}
		s.Foreign++
	}
}

func (s *Survey) result(r mapping.Result) {
	if s != nil && r.LeftOut != "" && r.Problem == "" {
		s.LeftOut[r.LeftOut]++
	}
}

func (s *Survey) record(a ledger.Assertion, routed bool) {
	s.Records++
	if a.Payload.State == ledger.Cancelled {
		s.Kinds["cancelled"]++
	} else {
		s.Kinds[a.Payload.Kind.String()]++
		if s.FirstDay == 0 || a.Payload.Day < s.FirstDay {
			s.FirstDay = a.Payload.Day
		}
		s.LastDay = max(s.LastDay, a.Payload.Day)
	}
	var h mapping.Hash
	h, s.buffer = mapping.HashOf(s.buffer, a.Key.Item, a.Key.Location)
	if s.keys.At(h) == nil {
		if s.keys.Len() == maxKeys {
			s.MoreKeys = true
			return
		}
		s.keys.Put(h, 1)
		s.Keys++
		if !routed && len(s.unknown) < Shown {
			s.unknown[a.Key] = struct{}{}
		}
	}
}

// repeated says that a revision of a transaction is said again with another content: it would be ambiguous and its key
// BLOCKED (S4, S7), which a file mostly means by mistake.
func (s *Survey) repeated(a ledger.Assertion) string {
	if s.seen == nil {
		return ""
	}
	var h mapping.Hash
	h, s.buffer = mapping.HashOf(s.buffer, a.Key.Item, a.Key.Location, a.TxnID, strconv.FormatInt(int64(a.Revision), 10))
	p := a.Payload
	content := fingerprint(uint64(p.State), uint64(p.Kind), uint64(p.Day), uint64(p.Quantity))
	before := s.seen.At(h)
	switch {
	case before == nil && s.seen.Len() == MaxRepeats:
		s.Unchecked = true
	case before == nil:
		s.seen.Put(h, content)
	case *before == content:
		s.Same++
	default:
		return fmt.Sprintf("transaction %.60q of item %.60q at location %.60q has revision %d already, with another content: is txn_id unique for each movement? (repeats: allow publishes both, which blocks the key)",
			a.TxnID, a.Key.Item, a.Key.Location, a.Revision)
	}
	return ""
}

// fingerprint mixes numbers into one that is not 0 (FNV-1a over their bytes, folded). Two contents share one by chance
// once in 2^32: then a repetition is not noticed, which is evidence for people only.
func fingerprint(numbers ...uint64) uint32 {
	h := uint64(14695981039346656037)
	for _, n := range numbers {
		for range 8 {
			h = (h ^ n&0xff) * 1099511628211
			n >>= 8
		}
	}
	return max(1, uint32(h>>32)^uint32(h))
}
