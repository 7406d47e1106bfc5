package workload

import (
	"fmt"
	"math"
	"strings"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

// HistoryOptions describe a random history. DefaultHistory fills them in for a seed.
type HistoryOptions struct {
	Seed       uint64
	Records    int  // 1 or more
	Keys       int  // stock keys, 1 or more
	Days       int  // business days that most records fall on, 1..ledger.HorizonDays
	Partitions int  // 1..ledger.MaxPartitions
	Poison     int  // records that fail validation, percent
	Conflicts  int  // records that contradict a recorded revision, percent
	Counts     int  // counts among new transactions and corrections, percent
	Hostile    bool // identifiers and spellings that no friendly source would choose
	Edges      bool // quantities, openings and thresholds at the ends of int64
	Open       bool // every key but the first is open instead of listed
	Gaps       bool // offsets with gaps, as control records leave them (S13)
}

// DefaultHistory returns the options of the property tests for a seed: at least 60 records of 3 keys, 20 days and 2
// partitions, of which each kind of difficulty takes part in a share of the seeds.
func DefaultHistory(seed uint64) HistoryOptions {
	r := NewRand(seed ^ 0xa5a5a5a5)
	return HistoryOptions{Seed: seed, Records: r.Between(60, 80), Keys: 3, Days: 20, Partitions: 2, Poison: 12, Conflicts: r.Between(2, 12), Counts: r.Between(2, 14),
		Hostile: r.Percent(30), Edges: r.Percent(20), Open: r.Percent(40), Gaps: r.Percent(30)}
}

// History is a source topic's content, with what its namespace is configured to.
type History struct {
	Setting Setting
	Records []ledger.SourceRecord // in order of arrival; offsets rise on each partition
}

// Partition returns the records of one partition in offset order.
func (h *History) Partition(p ledger.Partition) []ledger.SourceRecord {
	var rs []ledger.SourceRecord
	for _, rec := range h.Records {
		if rec.Partition == p {
			rs = append(rs, rec)
		}
	}
	return rs
}

// Config builds the configuration of a namespace for h, under a source incarnation of no real topic.
func (h *History) Config(namespace string) (*manifest.Config, error) {
	return h.Setting.Config(namespace, "kafka:"+strings.Repeat("0", 32))
}

// NewHistory makes the history of these options. The same options give the same bytes.
func NewHistory(o HistoryOptions) *History {
	h := &historian{HistoryOptions: o, r: NewRand(o.Seed), next: make([]ledger.Offset, o.Partitions)}
	h.settle()
	for range o.Records {
		h.emit()
	}
	return &History{Setting: h.setting, Records: h.out}
}

// historian makes one history.
type historian struct {
	HistoryOptions
	r       *Rand
	setting Setting
	books   []*book
	next    []ledger.Offset
	out     []ledger.SourceRecord
}

// book is what one key was told so far.
type book struct {
	key       ledger.StockKey
	partition ledger.Partition
	txns      []*told
	ids       map[string]bool // of txns
	disputed  []*told         // those that became ambiguous, until found resolved
}

// told is what one transaction was told so far.
type told struct {
	said      []ledger.Assertion // in order
	top       ledger.Assertion   // the last at the highest revision
	ambiguous bool
}

var (
	friendlyItems = []string{"widget", "gadget", "sprocket", "85123A", "85123a", "bolt M8"}
	hostileItems  = []string{"a\x00b", `"quoted"\`, "<script>alert(1)</script>", "caf\u00e9", "cafe\u0301", "\u202ertl", "😀", " lead", "\u2028\ufeff", "\t\n\b\f\r\x1f\x7f", "'; drop table--",
		strings.Repeat("€", 170) + "xy", strings.Repeat("\x01", 512), "\ufffd\uffff", "null"}
	places = []string{"berlin", "paris", "a/b", "Réunion"}
)

// settle chooses the keys and what they start with.
func (h *historian) settle() {
	origin, _ := ledger.DateOf(2026, 1, 1)
	h.setting = Setting{Origin: origin, Partitions: int32(h.Partitions)}
	if h.Open {
		h.setting.Open = h.terms()
	}
	for i := range h.Keys {
		k := ledger.StockKey{Item: friendlyItems[i%len(friendlyItems)], Location: places[i%len(places)]}
		if h.Hostile && i > 0 {
			k = ledger.StockKey{Item: pick(h.r, hostileItems), Location: pick(h.r, append(hostileItems, places...))}
		}
		if round := i / len(friendlyItems); round > 0 {
			k.Item = fmt.Sprintf("%.480s-%d", strings.ToValidUTF8(k.Item, "?"), i)
		}
		h.admit(k, i)
	}
}

// admit adds a key unless it is there.
func (h *historian) admit(k ledger.StockKey, i int) {
	for _, b := range h.books {
		if b.key == k {
			return
		}
	}
	p := ledger.Partition(i % h.Partitions)
	if h.Open && i > 0 {
		p = defaultPartition(k, h.setting.Partitions)
	} else {
		h.setting.Keys = append(h.setting.Keys, manifest.StockKey{Key: k, Partition: p, Terms: *h.terms()})
	}
	h.books = append(h.books, &book{key: k, partition: p, ids: make(map[string]bool)})
}

func (h *historian) terms() *manifest.Terms {
	t := &manifest.Terms{OpeningBalance: int64(h.r.Between(-20, 120))}
	limit := int64(h.r.Between(-20, 100))
	if h.Edges && h.r.Percent(70) {
		t.OpeningBalance = pick(h.r, []int64{math.MaxInt64, math.MaxInt64 - 7, math.MinInt64, math.MinInt64 + 7})
		limit = pick(h.r, []int64{math.MaxInt64, math.MinInt64, limit})
	}
	if h.r.Percent(85) {
		t.Threshold = &limit
	}
	return t
}

// emit adds the next record.
func (h *historian) emit() {
	b := pick(h.r, h.books)
	if h.r.Percent(h.Poison) {
		h.append(h.poison(b))
		return
	}
	t, a := h.assert(b)
	b.tell(t, a)
	fs := fieldsOf(a)
	rec := ledger.SourceRecord{Partition: b.partition}
	if odd := h.r.Percent(15); odd || h.Hostile && h.r.Percent(40) {
		rec.Value = appendSpelled(h.r, nil, fs)
	} else {
		rec.Value = appendObject(nil, fs)
	}
	rec.Key = spelledKey(h.r, b.key, 10)
	h.append(rec)
}

// append gives a record its place. Timestamps go backwards now and then; nothing may depend on them.
func (h *historian) append(rec ledger.SourceRecord) {
	p := rec.Partition
	if h.Gaps && h.r.Percent(15) {
		h.next[p] += ledger.Offset(h.r.Between(1, 3))
	}
	rec.Offset = h.next[p]
	h.next[p]++
	rec.Timestamp = 1_767_225_600_000 + int64(len(h.out))*1_000 - int64(h.r.Below(3))*5_000
	h.out = append(h.out, rec)
}

// poison is a record with one fault, seldom two.
func (h *historian) poison(b *book) ledger.SourceRecord {
	var faults []Fault
	for len(faults) == 0 || h.r.Percent(15) {
		f := Fault(h.r.Between(int(FaultSize), int(FaultRouting)))
		if f.Possible(h.setting) && (f != FaultSize || h.r.Percent(30)) {
			faults = append(faults, f)
		}
	}
	_, a := h.assert(b)
	return Spoil(h.r, h.setting, b.partition, a, faults...)
}
