package workload

import (
	"cmp"
	"fmt"
	"io"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

// Options describe what Generate writes; no value is negative. Zero values take the law's own: for Mixed 1 key, 30 days, 1,000 transactions.
type Options struct {
	Seed         uint64
	Keys         int // stock keys; of Retail items
	Days         int // business days, 1..ledger.HorizonDays
	Transactions int // assertions in all; of Retail sales
	Conflicts    int // of Mixed: records that contradict a recorded revision, percent; with 0 every key stays READY
	Law          Law
}

// Generate writes a history as a jsonl file for source load: one valid value of S3 a line, in order of arrival. It loads
// into a namespace of the configuration that WriteConfig writes for the same options; with the Mixed law and one key
// also into the default one, that of the worked example. The same options give the same bytes. It fails with w's error.
func Generate(w io.Writer, o Options) error {
	var line []byte
	for a := range o.assertions() {
		line = AppendLine(line[:0], a)
		if _, err := w.Write(line); err != nil {
			return fmt.Errorf("write history: %w", err)
		}
	}
	return nil
}

// WriteConfig writes the configuration file (source create -config) for what Generate writes with the same options. It
// fails with w's error.
func WriteConfig(w io.Writer, namespace string, o Options) error {
	if _, err := w.Write(o.Setting().AppendFile(nil, namespace)); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// Setting returns what the options ask of a configuration.
func (o Options) Setting() Setting {
	switch o.Law {
	case Mixed:
		return o.mixed().setting
	case Retail:
		return o.retail().Setting
	}
	return o.stream().Setting()
}

// assertions gives the assertions of a history one by one.
func (o Options) assertions() func(yield func(ledger.Assertion) bool) {
	return func(yield func(ledger.Assertion) bool) {
		switch o.Law {
		case Mixed:
			h := o.mixed()
			for range h.Records {
				b := pick(h.r, h.books)
				t, a := h.assert(b)
				b.tell(t, a)
				if !yield(a) {
					return
				}
			}
		case Retail:
			for _, a := range o.retail().Assertions {
				if !yield(a) {
					return
				}
			}
		default:
			s := o.stream()
			for range cmp.Or(o.Transactions, s.History()+s.History()/10) {
				if !yield(s.Next()) {
					return
				}
			}
		}
	}
}

func (o Options) retail() *Dataset {
	return SyntheticRetail(RetailOptions{Seed: o.Seed, Items: o.Keys, Days: o.Days, Sales: o.Transactions})
}

func (o Options) stream() *Stream {
	return NewStream(StreamOptions{Seed: o.Seed, Keys: o.Keys, Days: o.Days, Law: o.Law})
}

// mixed prepares a random history under the worked example's configuration, with more keys listed beside its own.
func (o Options) mixed() *historian {
	h := &historian{r: NewRand(o.Seed), HistoryOptions: HistoryOptions{Seed: o.Seed, Records: cmp.Or(o.Transactions, 1_000),
		Keys: cmp.Or(o.Keys, 1), Days: cmp.Or(o.Days, 30), Partitions: 2, Conflicts: o.Conflicts, Counts: 3}}
	origin, _ := ledger.DateOf(2026, 1, 1)
	h.setting = Setting{Origin: origin, Partitions: 2}
	for i := range h.Keys {
		k, limit := ledger.StockKey{Item: "widget", Location: "berlin"}, int64(60)
		if i > 0 {
			k = ledger.StockKey{Item: fmt.Sprintf("widget-%d", i+1), Location: places[i%2]}
		}
		p := ledger.Partition(i % 2)
		h.setting.Keys = append(h.setting.Keys, manifest.StockKey{Key: k, Partition: p, Terms: manifest.Terms{Threshold: &limit}})
		h.books = append(h.books, &book{key: k, partition: p, ids: make(map[string]bool)})
	}
	return h
}
