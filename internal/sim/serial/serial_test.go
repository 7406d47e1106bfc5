package serial

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/memory"
	"amends/internal/store/postgres"
)

func corpus(t *testing.T) []*History {
	t.Helper()
	var all []*History
	for seed := range uint64(Histories) {
		h, err := New(seed)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

// published folds outputs: the payloads that are present, and the versions.
type published struct {
	changes  map[ledger.OutputID]ledger.Change
	sequence ledger.Sequence
}

// apply takes one decision and checks I5, I6 and I12.
func (f *published) apply(t *testing.T, d *ledger.Decision) {
	t.Helper()
	blocked := false
	if s, ok := f.changes[ledger.OutputID{Key: d.Assertion.Key, Kind: ledger.TrustStatus}]; ok {
		blocked = s.Status.Blocked
	}
	after := blocked
	for i, c := range d.Changes {
		id := ledger.OutputID{Key: d.Assertion.Key, Day: c.Day, Kind: c.Kind}
		if c.Version != f.changes[id].Version+1 || d.Sequence+ledger.Sequence(i) != f.sequence {
			t.Errorf("I5: offset %d: %v version %d after %d", d.Offset, id, c.Version, f.changes[id].Version)
		}
		if !c.Present && !f.changes[id].Present {
			t.Errorf("I6: offset %d: %v is withdrawn twice", d.Offset, id)
		}
		if c.Kind == ledger.TrustStatus {
			after = c.Status.Blocked
		}
		f.changes[id] = c
		f.sequence++
	}
	if blocked && after {
		for _, c := range d.Changes {
			if c.Kind != ledger.TrustStatus {
				t.Errorf("I12: offset %d: a blocked key emits a %s", d.Offset, c.Kind)
			}
		}
	}
}

// compare checks I11 at one frontier: what is present of every READY key is what the oracle derives, and of a BLOCKED one
// its status; and I13 and I14 by arithmetic of its own.
func (f *published) compare(t *testing.T, cfg *manifest.Config, o *oracle.Oracle) {
	t.Helper()
	for e := range o.All() {
		status := f.changes[ledger.OutputID{Key: e.Key, Kind: ledger.TrustStatus}]
		if status.Status == nil || !status.Status.Equal(e.Status) {
			t.Errorf("I11: %v is %+v, the oracle says %+v", e.Key, status.Status, e.Status)
		}
		if e.Status.Blocked {
			continue
		}
		var days []ledger.Change
		alerts := 0
		for id, c := range f.changes {
			switch {
			case id.Key != e.Key || !c.Present:
			case id.Kind == ledger.Balance:
				days = append(days, c)
			case id.Kind == ledger.Alert:
				alerts++
			}
		}
		slices.SortFunc(days, func(a, b ledger.Change) int { return cmp.Compare(a.Day, b.Day) })
		if len(days) != len(e.Balances) || alerts != len(e.Alerts) {
			t.Fatalf("I11: %v has %d balances and %d alerts, the oracle %d and %d", e.Key, len(days), alerts, len(e.Balances), len(e.Alerts))
		}
		terms, _ := cfg.Terms(e.Key)
		previous := terms.OpeningBalance
		for i, c := range days {
			if c.Day != e.Balances[i].Day || c.Close != e.Balances[i].Close {
				t.Errorf("I11: %v day %v is %d, the oracle says %d", e.Key, c.Day, c.Close, e.Balances[i].Close)
			}
			if moved, counted := movements(o, e.Key, c.Day); !counted && new(big.Int).Sub(big.NewInt(c.Close), big.NewInt(previous)).Cmp(moved) != 0 {
				t.Errorf("I13: %v day %v goes from %d to %d by %v", e.Key, c.Day, previous, c.Close, moved)
			}
			alert := f.changes[ledger.OutputID{Key: e.Key, Day: c.Day, Kind: ledger.Alert}]
			if crosses := terms.Threshold != nil && previous >= *terms.Threshold && c.Close < *terms.Threshold; crosses != alert.Present {
				t.Errorf("I14: %v day %v from %d to %d: alert %t", e.Key, c.Day, previous, c.Close, alert.Present)
			}
			previous = c.Close
		}
	}
}

// movements returns what the sources of a day add up to, and whether a count is among them.
func movements(o *oracle.Oracle, key ledger.StockKey, day ledger.Day) (sum *big.Int, counted bool) {
	sum = new(big.Int)
	for _, s := range o.Sources(key, day) {
		p := s.Assertion.Payload
		switch {
		case p.Day != day || p.State != ledger.Active:
		case p.Kind == ledger.Receipt:
			sum.Add(sum, big.NewInt(int64(p.Quantity)))
		case p.Kind == ledger.Issue:
			sum.Sub(sum, big.NewInt(int64(p.Quantity)))
		default:
			counted = true
		}
	}
	return sum, counted
}

// The serial model of every history keeps I3, I5, I6, I11 to I15 at every frontier.
// Shows I5, I6, I11, I12, I13, I14.
func TestCorpusKeepsTheInvariants(t *testing.T) {
	records, rejected, blocked := 0, 0, 0
	for n, h := range corpus(t) {
		cfg := h.Manifest.Config
		config := oracle.Config{Origin: cfg.LedgerOrigin, Partitions: cfg.Partitions}
		for _, k := range cfg.StockKeys {
			config.Keys = append(config.Keys, oracle.Key{Key: k.Key, Partition: k.Partition, Terms: oracle.Terms{Threshold: k.Threshold, Opening: k.OpeningBalance}})
		}
		if cfg.OpenKeys != nil {
			config.Open = &oracle.Terms{Threshold: cfg.OpenKeys.Threshold, Opening: cfg.OpenKeys.OpeningBalance}
		}
		for p := range h.Parts {
			part := &h.Parts[p]
			o := oracle.New(config)
			f := &published{changes: map[ledger.OutputID]ledger.Change{}}
			for i, rec := range part.Records {
				d := &part.Decisions[i]
				verdict := o.Add(ledger.Partition(p), rec.Offset, rec.Key, rec.Value)
				if d.Offset != rec.Offset || d.Rejection != verdict.Rejection || d.Class != verdict.Class {
					t.Errorf("I3: history %d offset %d: %v %v, the oracle says %v %v", n, rec.Offset, d.Rejection, d.Class, verdict.Rejection, verdict.Class)
				}
				if d.Rejection != 0 {
					rejected++
					if d.Evidence == nil || !slices.Equal(d.Evidence.Key, rec.Key[:min(len(rec.Key), ledger.MaxKeyBytes)]) || !slices.Equal(d.Evidence.Value, rec.Value) {
						t.Errorf("I15: history %d offset %d: the evidence of %v, %d and %d bytes, is not the record", n, rec.Offset, d.Rejection, len(rec.Key), len(rec.Value))
					}
				}
				f.apply(t, d)
				f.compare(t, cfg, o)
				records++
			}
			if len(part.blocked()) > 0 {
				blocked++
			}
		}
		if t.Failed() {
			t.Fatalf("history %d", n)
		}
	}
	t.Logf("%d records, %d rejected, %d partitions with a key that was blocked", records, rejected, blocked)
	if records < 1_500 || rejected < 100 || blocked < 40 {
		t.Error("the corpus lacks what it is for")
	}
}

func (part *Part) blocked() (at []int) {
	for i, n := range part.Blocked {
		if n > 0 {
			at = append(at, i)
		}
	}
	return at
}

// committer is what both stores have for a test that commits.
type committer interface {
	Claim(ctx context.Context, p ledger.Partition) (store.Owned, error)
	Commit(ctx context.Context, t store.Token, b *ledger.Batch) error
	Snapshot(ctx context.Context, fn func(store.Snapshot) error) error
}

// A selection of the corpus is committed record by record to PostgreSQL and to memory: both then hold the serial model.
// Shows I3.
func TestSerialModelOnBothStores(t *testing.T) {
	ctx := t.Context()
	db, err := postgres.Open(ctx, postgres.Options{URL: pgtest.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	all := corpus(t)
	for n := 0; n < len(all); n += 16 {
		h := all[n]
		cfg := *h.Manifest.Config
		cfg.Namespace = "serial-" + string(rune('a'+n/16))
		real, err := db.Init(ctx, &cfg, SourceName)
		if err != nil {
			t.Fatal(err)
		}
		inMemory, err := memory.New().Init(ctx, &cfg, SourceName)
		if err != nil {
			t.Fatal(err)
		}
		for name, ns := range map[string]committer{"postgres": real, "memory": inMemory} {
			for p := range h.Parts {
				commitAll(t, ns, ledger.Partition(p), &h.Parts[p])
				holds(t, name, ns, ledger.Partition(p), &h.Parts[p])
			}
		}
	}
}

func commitAll(t *testing.T, ns committer, p ledger.Partition, part *Part) {
	t.Helper()
	owned, err := ns.Claim(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	b := ledger.Batch{Partition: p}
	for i := range part.Decisions {
		d := part.Decisions[i]
		b.Expected, b.Next = b.Next, ledger.Frontier(d.Offset)+1
		b.FirstSequence, b.NextSequence = b.NextSequence, part.Ends[i]
		b.Decisions = []ledger.Decision{d}
		if err := ns.Commit(t.Context(), owned.Token, &b); err != nil {
			t.Fatalf("commit offset %d: %v", d.Offset, err)
		}
	}
}

func holds(t *testing.T, name string, ns committer, p ledger.Partition, part *Part) {
	t.Helper()
	var journal []ledger.Decision
	if err := ns.Snapshot(t.Context(), func(s store.Snapshot) error {
		return s.Journal(t.Context(), p, func(d *ledger.Decision) error {
			journal = append(journal, store.CloneDecision(d))
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	if len(journal) != len(part.Decisions) {
		t.Fatalf("%s: %d decisions of %d", name, len(journal), len(part.Decisions))
	}
	for i := range journal {
		if what := Differs(&journal[i], &part.Decisions[i]); what != "" {
			t.Errorf("%s: offset %d: %s: %s", name, journal[i].Offset, what, gocmp.Diff(part.Decisions[i], journal[i]))
		}
	}
}
