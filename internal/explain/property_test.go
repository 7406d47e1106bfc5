package explain_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"amends/internal/engine"
	"amends/internal/explain"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
	"amends/internal/pace"
	"amends/internal/store/postgres/reader"
	"amends/internal/wire"
	"amends/internal/workload"
)

const roomy = 1 << 30

// world is one history as it was decided, with what the oracle makes of every prefix of its source.
type world struct {
	cfg     *manifest.Config
	oracle  *oracle.Oracle
	entries map[ledger.StockKey][]reader.Entry
	ready   map[ledger.StockKey]oracle.Expectation // as of the last prefix that left the key READY
	records []ledger.SourceRecord
	states  []*engine.States
	at      []engine.Position
	decoder *wire.Decoder
	commit  func(*ledger.Batch) // nil: nothing is stored
}

func newWorld(t testing.TB, cfg *manifest.Config) *world {
	t.Helper()
	w := &world{cfg: cfg, entries: map[ledger.StockKey][]reader.Entry{}, ready: map[ledger.StockKey]oracle.Expectation{},
		decoder: wire.NewDecoder(cfg), states: make([]*engine.States, cfg.Partitions), at: make([]engine.Position, cfg.Partitions)}
	for p := range w.states {
		w.states[p] = engine.NewStates(cfg, ledger.Partition(p), roomy)
	}
	o := oracle.Config{Origin: cfg.LedgerOrigin, Partitions: cfg.Partitions}
	if cfg.OpenKeys != nil {
		o.Open = &oracle.Terms{Opening: cfg.OpenKeys.OpeningBalance, Threshold: cfg.OpenKeys.Threshold}
	}
	for _, k := range cfg.StockKeys {
		o.Keys = append(o.Keys, oracle.Key{Key: k.Key, Partition: k.Partition, Terms: oracle.Terms{Opening: k.OpeningBalance, Threshold: k.Threshold}})
	}
	w.oracle = oracle.New(o)
	return w
}

// add decides a record and shows it to the oracle. It returns the decision.
func (w *world) add(t testing.TB, rec ledger.SourceRecord) ledger.Decision {
	t.Helper()
	p := rec.Partition
	recs := []wire.Decoded{w.decoder.Decode(rec)}
	for _, key := range w.states[p].Missing(recs) {
		if err := w.states[p].Restore(key, 0, false, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	b, err := engine.Step(w.states[p], w.at[p], recs, ledger.Frontier(rec.Offset)+1)
	if err != nil {
		t.Fatal(err)
	}
	w.at[p] = engine.Position{Frontier: b.Next, Sequence: b.NextSequence}
	if w.commit != nil {
		w.commit(&b)
	}
	d := b.Decisions[0]
	w.records = append(w.records, rec)
	if w.oracle.Add(p, rec.Offset, rec.Key, rec.Value).Rejection == 0 {
		key := d.Assertion.Key
		w.entries[key] = append(w.entries[key], reader.Entry{Decision: d, Committed: time.Unix(int64(len(w.records)), 0)})
		if e := w.oracle.Expected(key); !e.Status.Blocked {
			w.ready[key] = e
		}
	}
	return d
}

// account reads a key's decisions.
func (w *world) account(key ledger.StockKey) *explain.Account {
	terms, _ := w.cfg.Terms(key)
	p, _ := w.cfg.Route(key)
	a := explain.NewAccount(p, w.cfg.LedgerOrigin, terms.OpeningBalance)
	for i := range w.entries[key] {
		a.Add(&w.entries[key][i])
	}
	return a
}

// want is the prefix fold of what the oracle expected when the key was last READY (S5, S7, C15).
func (w *world) want(key ledger.StockKey, as ledger.Day) explain.Balance {
	terms, _ := w.cfg.Terms(key)
	want := explain.Balance{Close: terms.OpeningBalance}
	for _, b := range w.ready[key].Balances {
		if as == 0 || b.Day <= as {
			want.Close, want.Day = b.Close, b.Day
		}
	}
	return want
}

// I24: whatever is asked, the lines add up to the balance, which is the oracle's of the same prefix of the source, and each
// line is a record of it.
// Shows I24.
func TestI24C15LinesAddUpToTheBalance(t *testing.T) {
	t.Parallel()
	questions := pace.Of(10_000)
	seen := map[string]int{}
	r := workload.NewRand(24)
	for seed := uint64(0); seen["questions"] < questions; seed++ {
		h := workload.NewHistory(workload.DefaultHistory(seed))
		cfg, err := h.Config("lines")
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, cfg)
		var keys []ledger.StockKey
		for _, rec := range h.Records {
			rec.Offset *= 2 // room for a twin
			d := w.add(t, rec)
			if key := d.Assertion.Key; key.Item != "" && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
			if d.Assertion.Payload.Kind.IsCount() && r.Percent(30) {
				w.add(t, twin(rec, d.Assertion, len(w.records)))
			}
			if len(keys) > 0 && r.Percent(30) {
				w.ask(t, seed, keys[r.Below(len(keys))], dayOf(r, cfg), r.Below(12), seen)
			}
			if t.Failed() {
				return
			}
		}
	}
	for _, what := range []string{"blocked", "aside", "opening_count", "closing_count", "opening_balance", "day", "receipt", "issue",
		"cancelled", "reactivated", "agreeing count", "zero", "opening as of", "beyond int64"} {
		if seen[what] < questions/1_000 {
			t.Errorf("%s occurred %d times in %d questions", what, seen[what], questions)
		}
	}
}

// twin states a count again, as another transaction: the two agree as long as both apply.
func twin(rec ledger.SourceRecord, a ledger.Assertion, n int) ledger.SourceRecord {
	a.TxnID, a.Revision = fmt.Sprintf("twin %d", n), 1
	rec.Offset, rec.Value = rec.Offset+1, wire.AppendAssertion(nil, a)
	return rec
}

// dayOf returns a day about the origin and after, or none.
func dayOf(r *workload.Rand, cfg *manifest.Config) ledger.Day {
	if r.Percent(20) {
		return 0
	}
	return cfg.LedgerOrigin + ledger.Day(r.Between(-2, 30))
}

func (w *world) ask(t *testing.T, seed uint64, key ledger.StockKey, as ledger.Day, most int, seen map[string]int) {
	t.Helper()
	seen["questions"]++
	a := w.account(key)
	got, want := a.Balance(as), w.want(key, as)
	if got.Close != want.Close || got.Day != want.Day {
		t.Fatalf("seed %d, %d records, %q as of %v: balance %+v, want %+v", seed, len(w.records), key, as, got, want)
	}
	if blocked := w.oracle.Expected(key).Status.Blocked; blocked != (a.Blocked() != nil) || blocked != a.Status().Blocked {
		t.Fatalf("seed %d: blocked %v", seed, blocked)
	}
	rows := a.Balances(0, as)
	if expected := w.ready[key].Balances; as == 0 && len(rows) != len(expected) || len(rows) > 0 && rows[len(rows)-1] != got {
		t.Fatalf("seed %d: %d rows, %d expected", seed, len(rows), len(expected))
	}
	sum, lines := new(big.Int), a.Lines(as, most)
	for i := range lines {
		l := &lines[i]
		if sum.Add(sum, l.Amount); sum.Cmp(l.Total) != 0 {
			t.Fatalf("seed %d: total %v, want %v", seed, l.Total, sum)
		}
		if !sum.IsInt64() {
			seen["beyond int64"]++
		}
		seen[string(l.Kind)]++
		w.checkLine(t, seed, key, l)
		if i > 0 && l.Amount.Sign() == 0 && l.Kind != explain.DayOfMovements {
			seen["agreeing count"]++
		}
	}
	if sum.Cmp(big.NewInt(got.Close)) != 0 {
		t.Fatalf("seed %d, %d records, %q as of %v: the lines add up to %v, the balance is %d\n%+v", seed, len(w.records), key, as, sum, got.Close, lines)
	}
	w.note(key, a, got, seen)
}

// checkLine compares a line with the record that it names.
func (w *world) checkLine(t *testing.T, seed uint64, key ledger.StockKey, l *explain.Line) {
	t.Helper()
	if l.Kind == explain.OpeningBalance || l.Kind == explain.DayOfMovements {
		return
	}
	p, _ := w.cfg.Route(key)
	i := slices.IndexFunc(w.records, func(r ledger.SourceRecord) bool { return r.Partition == p && r.Offset == l.Source })
	if i < 0 {
		t.Fatalf("seed %d: no record at %d", seed, l.Source)
	}
	a, rejection, _ := wire.ParseValue(w.records[i].Value)
	if rejection != 0 || a.Key != key || a.TxnID != l.TxnID || a.Revision != l.Revision || a.Payload.Day != l.Day || a.Payload.Kind.String() != string(l.Kind) {
		t.Fatalf("seed %d: line %+v names record %+v", seed, l, a)
	}
}

// note counts what the question reached.
func (w *world) note(key ledger.StockKey, a *explain.Account, got explain.Balance, seen map[string]int) {
	if a.Blocked() != nil {
		seen["blocked"]++
		if last := w.entries[key][len(w.entries[key])-1].Decision; last.Offset != a.Blocked().Offset && last.Class == ledger.Applied {
			seen["aside"]++ // authority went on while the outputs stayed frozen
		}
	}
	if got.Day == 0 {
		seen["opening as of"]++
	} else if got.Close == 0 {
		seen["zero"]++
	}
	cancelled := map[string]bool{}
	for _, e := range w.entries[key] {
		d := &e.Decision
		if d.Class != ledger.Applied {
			continue
		}
		if d.Assertion.Payload.State == ledger.Cancelled {
			seen["cancelled"]++
			cancelled[d.Assertion.TxnID] = true
		} else if cancelled[d.Assertion.TxnID] {
			seen["reactivated"]++
		}
	}
}
