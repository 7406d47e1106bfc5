package workload

import (
	"bytes"
	"slices"
	"testing"

	"amends/internal/ledger"
	"amends/internal/oracle"
	"amends/internal/pace"
)

// judge returns an oracle for a setting.
func judge(s Setting) *oracle.Oracle {
	cfg := oracle.Config{Origin: s.Origin, Partitions: s.Partitions}
	if s.Open != nil {
		cfg.Open = &oracle.Terms{Opening: s.Open.OpeningBalance, Threshold: s.Open.Threshold}
	}
	for _, k := range s.Keys {
		cfg.Keys = append(cfg.Keys, oracle.Key{Key: k.Key, Partition: k.Partition, Terms: oracle.Terms{Opening: k.OpeningBalance, Threshold: k.Threshold}})
	}
	return oracle.New(cfg)
}

// coverage counts what histories reached, as the oracle sees it.
type coverage map[string]int

func (c coverage) of(t *testing.T, h *History) {
	o := judge(h.Setting)
	seen := outputs{}
	type identity struct {
		key ledger.StockKey
		txn string
	}
	days := map[identity]ledger.Day{}
	next := map[ledger.Partition]ledger.Offset{}
	for _, rec := range h.Records {
		if rec.Offset < next[rec.Partition] {
			t.Fatalf("offset %d of partition %d again", rec.Offset, rec.Partition)
		}
		next[rec.Partition] = rec.Offset + 1
		v := o.Add(rec.Partition, rec.Offset, rec.Key, rec.Value)
		if v.Rejection != 0 {
			c[v.Rejection.String()]++
			continue
		}
		c[v.Class.String()]++
		c[v.Assertion.Payload.Kind.String()]++
		c[v.Assertion.Payload.State.String()]++
		e := o.Expected(v.Assertion.Key)
		id := identity{v.Assertion.Key, v.Assertion.TxnID}
		if d := v.Assertion.Payload.Day; v.Class == ledger.Applied && d != 0 {
			if was := days[id]; was != 0 && was != d {
				c["day move"]++
			}
			days[id] = d
		}
		for _, r := range e.Status.Reasons {
			c[r.Code.String()]++
		}
		withdrawn, returned := seen.follow(e)
		c["withdrawn"] += withdrawn
		c["reactivation"] += returned
	}
}

// outputs remembers the balances of each key: true while present, false once withdrawn.
type outputs map[ledger.StockKey]map[ledger.Day]bool

// follow compares an expectation with what was there and counts withdrawals and returns.
func (o outputs) follow(e oracle.Expectation) (withdrawn, returned int) {
	if e.Status.Blocked {
		return 0, 0
	}
	if o[e.Key] == nil {
		o[e.Key] = map[ledger.Day]bool{}
	}
	days := o[e.Key]
	for d, present := range days {
		if present && !slices.ContainsFunc(e.Balances, func(b oracle.Balance) bool { return b.Day == d }) {
			days[d] = false
			withdrawn++
		}
	}
	for _, b := range e.Balances {
		if present, seen := days[b.Day]; seen && !present {
			returned++
		}
		days[b.Day] = true
	}
	return withdrawn, returned
}

// TestHistoriesReachEverything holds the generator to the floor that the property tests need over 10,000 histories:
// 500 of each class, rejection code, kind, BLOCKED reason, reactivation and day move. A tenth of them must reach a tenth.
func TestHistoriesReachEverything(t *testing.T) {
	t.Parallel()
	c := coverage{}
	for seed := range uint64(pace.Of(1_000)) {
		h := NewHistory(DefaultHistory(seed))
		if len(h.Records) < 60 {
			t.Fatalf("seed %d: %d records", seed, len(h.Records))
		}
		c.of(t, h)
	}
	for _, what := range []string{"DUPLICATE", "APPLIED", "CONFLICT", "STALE", "STALE_CONFLICT", "TOO_LARGE", "MALFORMED", "UNSUPPORTED_SCHEMA", "INVALID_VALUE", "OUT_OF_HORIZON",
		"UNKNOWN_KEY", "KEY_MISMATCH", "ROUTING", "receipt", "issue", "opening_count", "closing_count", "active", "cancelled", "AMBIGUOUS", "COUNTS_DISAGREE", "UNREPRESENTABLE",
		"withdrawn", "reactivation", "day move"} {
		if c[what] < pace.Of(100) {
			t.Errorf("%s occurred %d times, want %d", what, c[what], pace.Of(100))
		}
	}
	t.Log(c)
}

func TestHistoryIsDeterminedByItsOptions(t *testing.T) {
	t.Parallel()
	same := func(a, b ledger.SourceRecord) bool {
		return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && (a.Key == nil) == (b.Key == nil) && (a.Value == nil) == (b.Value == nil) &&
			a.Offset == b.Offset && a.Partition == b.Partition && a.Timestamp == b.Timestamp
	}
	differ := 0
	for seed := range uint64(pace.Of(200)) {
		a, b := NewHistory(DefaultHistory(seed)), NewHistory(DefaultHistory(seed))
		if !slices.EqualFunc(a.Records, b.Records, same) {
			t.Fatalf("seed %d gives two histories", seed)
		}
		if _, err := a.Config("demo"); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !slices.EqualFunc(a.Records, NewHistory(DefaultHistory(seed+1)).Records, same) {
			differ++
		}
		n := 0
		for p := range ledger.Partition(2) {
			n += len(a.Partition(p))
		}
		if n != len(a.Records) {
			t.Fatalf("seed %d: partitions hold %d of %d records", seed, n, len(a.Records))
		}
	}
	if differ != pace.Of(200) {
		t.Errorf("%d of %d seeds differ from the next", differ, pace.Of(200))
	}
}

// SC15: for each fault its code, and for each pair the earlier one.
func TestSC15SpoiledRecordsHaveTheEarlierCode(t *testing.T) {
	t.Parallel()
	r := NewRand(15)
	base := NewHistory(HistoryOptions{Seed: 1, Records: 200, Keys: 3, Days: 20, Partitions: 2, Hostile: true})
	o := judge(base.Setting)
	var valid []oracle.Verdict
	for _, rec := range base.Records {
		v := o.Add(rec.Partition, rec.Offset, rec.Key, rec.Value)
		if v.Rejection != 0 {
			t.Fatalf("%s: %q %q", v.Rejection, rec.Key, rec.Value)
		}
		valid = append(valid, v)
	}
	for first := FaultSize; first <= FaultRouting; first++ {
		for second := first; second <= FaultRouting; second++ {
			for range pace.Of(150) {
				v := pick(r, valid)
				p := o.Expected(v.Assertion.Key).Partition
				rec := Spoil(r, base.Setting, p, v.Assertion, second, first)
				if got := o.Add(rec.Partition, 0, rec.Key, rec.Value); got.Rejection != first.Code() {
					t.Fatalf("faults %d and %d: %q, want %s\nkey   %q\nvalue %.300q", first, second, got.Rejection, first.Code(), rec.Key, rec.Value)
				}
			}
		}
	}
}
