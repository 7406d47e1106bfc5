package engine_test

import (
	"slices"
	"testing"

	"amends/internal/engine"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
	"amends/internal/pace"
	"amends/internal/wire"
	"amends/internal/workload"
)

// facts is what one key has published, folded from its decisions.
type facts struct {
	balances map[ledger.Day]int64
	alerts   map[ledger.Day][2]int64
	status   ledger.Status
}

// duel runs one history through the engine and the oracle, record by record.
type duel struct {
	t       testing.TB
	seed    uint64
	cfg     *manifest.Config
	oracle  *oracle.Oracle
	facts   map[ledger.StockKey]*facts
	applied map[ledger.StockKey]map[string]ledger.Payload // the authority's payload, for counting moves
	seen    map[string]int
}

// TestEngineEqualsOracle is I11: on 10,000 random histories the published outputs of a record's key are the oracle's after
// every record, and so are class and rejection code. It fails unless everything that the contract names occurred often.
// Shows I11, I14.
func TestEngineEqualsOracle(t *testing.T) {
	t.Parallel()
	histories := pace.Of(10_000)
	seen := map[string]int{}
	for seed := range uint64(histories) {
		runDuel(t, seed, seen)
		if t.Failed() {
			return
		}
	}
	floor := histories / 20
	for _, what := range occurrences() {
		if seen[what] < floor {
			t.Errorf("%s occurred %d times in %d histories, want %d", what, seen[what], histories, floor)
		}
	}
	if seen["records"] < 60*histories {
		t.Errorf("%d records in %d histories, want 60 each", seen["records"], histories)
	}
}

// occurrences names what the histories must show.
func occurrences() []string {
	names := []string{"reactivation", "day move", "READY again"}
	for c := ledger.Duplicate; c <= ledger.StaleConflict; c++ {
		names = append(names, c.String())
	}
	for r := ledger.TooLarge; r <= ledger.Routing; r++ {
		names = append(names, r.String())
	}
	for k := ledger.Receipt; k <= ledger.ClosingCount; k++ {
		names = append(names, k.String())
	}
	for r := ledger.Ambiguous; r <= ledger.Unrepresentable; r++ {
		names = append(names, r.String())
	}
	return names
}

func runDuel(t testing.TB, seed uint64, seen map[string]int) {
	h := workload.NewHistory(workload.DefaultHistory(seed))
	cfg, err := h.Config("duel")
	if err != nil {
		t.Fatal(err)
	}
	d := &duel{t: t, seed: seed, cfg: cfg, oracle: oracle.New(oracleConfig(cfg)), seen: seen,
		facts: map[ledger.StockKey]*facts{}, applied: map[ledger.StockKey]map[string]ledger.Payload{}}
	decoder := wire.NewDecoder(cfg)
	states, at := make([]*engine.States, cfg.Partitions), make([]engine.Position, cfg.Partitions)
	for p := range states {
		states[p] = engine.NewStates(cfg, ledger.Partition(p), roomy)
	}
	for _, rec := range h.Records {
		p := rec.Partition
		recs := []wire.Decoded{decoder.Decode(rec)}
		for _, key := range states[p].Missing(recs) {
			if err := states[p].Restore(key, 0, false, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		b, err := engine.Step(states[p], at[p], recs, ledger.Frontier(rec.Offset)+1)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		at[p] = engine.Position{Frontier: b.Next, Sequence: b.NextSequence}
		d.compare(rec, &b.Decisions[0])
	}
	for want := range d.oracle.All() {
		d.compareKey(want)
	}
}

func oracleConfig(cfg *manifest.Config) oracle.Config {
	out := oracle.Config{Origin: cfg.LedgerOrigin, Partitions: cfg.Partitions}
	if cfg.OpenKeys != nil {
		out.Open = &oracle.Terms{Opening: cfg.OpenKeys.OpeningBalance, Threshold: cfg.OpenKeys.Threshold}
	}
	for _, k := range cfg.StockKeys {
		out.Keys = append(out.Keys, oracle.Key{Key: k.Key, Partition: k.Partition,
			Terms: oracle.Terms{Opening: k.OpeningBalance, Threshold: k.Threshold}})
	}
	return out
}

// compare checks one decision against the oracle's verdict and, for a valid record, its key's outputs.
func (d *duel) compare(rec ledger.SourceRecord, got *ledger.Decision) {
	d.seen["records"]++
	v := d.oracle.Add(rec.Partition, rec.Offset, rec.Key, rec.Value)
	if v.Rejection != got.Rejection || v.Class != got.Class || v.Rejection == 0 && v.Assertion != got.Assertion {
		d.t.Fatalf("seed %d partition %d offset %d: decided %v %v %+v, the oracle says %v %v %+v", d.seed, rec.Partition, rec.Offset,
			got.Rejection, got.Class, got.Assertion, v.Rejection, v.Class, v.Assertion)
	}
	if v.Rejection != 0 {
		d.seen[v.Rejection.String()]++
		return
	}
	d.seen[v.Class.String()]++
	d.noteMove(got)
	d.publish(got)
	d.compareKey(d.oracle.Expected(v.Assertion.Key))
}

// noteMove counts kinds and movements that changed their day.
func (d *duel) noteMove(got *ledger.Decision) {
	a := got.Assertion
	if a.Payload.State == ledger.Active {
		d.seen[a.Payload.Kind.String()]++
	}
	if got.Class != ledger.Applied {
		return
	}
	if d.applied[a.Key] == nil {
		d.applied[a.Key] = map[string]ledger.Payload{}
	}
	if old := d.applied[a.Key][a.TxnID]; old.State == ledger.Active && a.Payload.State == ledger.Active && old.Day != a.Payload.Day {
		d.seen["day move"]++
	}
	d.applied[a.Key][a.TxnID] = a.Payload
}

// publish folds the outputs of a decision into its key's facts.
func (d *duel) publish(got *ledger.Decision) {
	f := d.facts[got.Assertion.Key]
	if f == nil {
		f = &facts{balances: map[ledger.Day]int64{}, alerts: map[ledger.Day][2]int64{}}
		d.facts[got.Assertion.Key] = f
	}
	for _, c := range got.Changes {
		switch {
		case c.Kind == ledger.TrustStatus:
			if f.status.Blocked && !c.Status.Blocked {
				d.seen["READY again"]++
			}
			f.status = *c.Status
			for _, r := range c.Status.Reasons {
				d.seen[r.Code.String()]++
			}
		case c.Kind == ledger.Balance && c.Present:
			if _, present := f.balances[c.Day]; !present && c.Version > 1 {
				d.seen["reactivation"]++
			}
			f.balances[c.Day] = c.Close
		case c.Kind == ledger.Balance:
			delete(f.balances, c.Day)
		case c.Present:
			f.alerts[c.Day] = [2]int64{c.Previous, c.Close}
		default:
			delete(f.alerts, c.Day)
		}
	}
}

// compareKey compares what one key has published with what the oracle expects; of a blocked key the status only (S10).
func (d *duel) compareKey(want oracle.Expectation) {
	f := d.facts[want.Key]
	if f == nil || !f.status.Equal(want.Status) {
		d.t.Fatalf("seed %d key %v: published %+v, the oracle expects %+v", d.seed, want.Key, f, want.Status)
	}
	if want.Status.Blocked {
		return
	}
	balances := !slices.ContainsFunc(want.Balances, func(b oracle.Balance) bool { v, ok := f.balances[b.Day]; return !ok || v != b.Close })
	terms, _ := d.cfg.Terms(want.Key)
	alerts := !slices.ContainsFunc(want.Alerts, func(a oracle.Alert) bool {
		v, ok := f.alerts[a.Day]
		return !ok || v != [2]int64{a.Previous, a.Close} || a.Threshold != *terms.Threshold
	})
	if !balances || !alerts || len(want.Balances) != len(f.balances) || len(want.Alerts) != len(f.alerts) {
		d.t.Fatalf("seed %d key %v: published %+v, the oracle expects %+v", d.seed, want.Key, *f, want)
	}
}
