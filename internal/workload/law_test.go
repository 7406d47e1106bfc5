package workload

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
	"amends/internal/pace"
	"amends/internal/wire"
)

func TestLawNames(t *testing.T) {
	t.Parallel()
	for _, n := range Laws() {
		if l, ok := ParseLaw(n); !ok || l.String() != n {
			t.Errorf("%s: %v %v", n, l, ok)
		}
	}
	if _, ok := ParseLaw("no law"); ok || Law(99).String() != "" {
		t.Error("an unknown law was found")
	}
}

// The figures of performance.md: keys, transactions a key, the mix of the measured stream, and how many outputs a record
// changes, counted by an oracle before and after it. Under
// the race detector they are judged on a tenth of their keys.
func TestStreamsFollowTheirLaws(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		law           Law
		keys, history int
		least, most   float64
		measured      int
	}{
		{law: Short, keys: 1_000, history: 162_000, least: 1, most: 1.6, measured: 20_000},
		{law: LongShallow, keys: 200, history: 400_000, least: 1, most: 1.6, measured: 2_000},
		{law: LongDeep, keys: 200, history: 400_000, least: 15, most: 40, measured: 2_000},
	} {
		t.Run(c.law.String(), func(t *testing.T) {
			t.Parallel()
			s := NewStream(StreamOptions{Law: c.law, Seed: 5, Keys: pace.Of(c.keys)})
			set := s.Setting()
			if len(set.Keys) != pace.Of(c.keys) || s.History() != pace.Of(c.history) {
				t.Fatalf("%d keys, %d records of history", len(set.Keys), s.History())
			}
			cfg, err := set.Config("bench", "kafka:00112233445566778899aabbccddeeff")
			if err != nil {
				t.Fatal(err)
			}
			o, log := judge(set), NewLog(cfg)
			add := func(a ledger.Assertion) oracle.Verdict {
				rec := log.Record(a)
				v := o.Add(rec.Partition, rec.Offset, rec.Key, rec.Value)
				if v.Rejection != 0 || v.Class != ledger.Applied {
					t.Fatalf("%s %s: %q", v.Rejection, v.Class, rec.Value)
				}
				return v
			}
			last := ledger.Day(0)
			for range s.History() {
				a := add(s.Next()).Assertion
				if a.Revision != 1 || a.Payload.Day < last {
					t.Fatalf("history: %+v after day %s", a, last)
				}
				last = a.Payload.Day
			}
			changed, corrections, cancellations := 0, 0, 0
			for range c.measured {
				a := s.Next()
				before := o.Expected(a.Key)
				add(a)
				changed += changes(before, o.Expected(a.Key))
				switch {
				case a.Payload.State == ledger.Cancelled:
					cancellations++
				case a.Revision > 1:
					corrections++
				}
			}
			ratio := float64(changed) / float64(c.measured)
			t.Logf("%.2f outputs a record, %d corrections, %d cancellations", ratio, corrections, cancellations)
			if ratio < c.least || ratio > c.most {
				t.Errorf("%.2f changed outputs a record, want %.1f to %.1f", ratio, c.least, c.most)
			}
			if n := c.measured; corrections < n*85/1000 || corrections > n*115/1000 || cancellations < n*13/1000 || cancellations > n*27/1000 {
				t.Errorf("%d corrections and %d cancellations in %d records", corrections, cancellations, n)
			}
		})
	}
}

// changes counts the outputs in which two expectations of one key differ.
func changes(a, b oracle.Expectation) (n int) {
	type facts struct {
		balance, alert bool
		close          int64
		fell           oracle.Alert
	}
	index := func(e oracle.Expectation) map[ledger.Day]facts {
		m := map[ledger.Day]facts{}
		for _, x := range e.Balances {
			m[x.Day] = facts{balance: true, close: x.Close}
		}
		for _, x := range e.Alerts {
			f := m[x.Day]
			f.alert, f.fell = true, x
			m[x.Day] = f
		}
		return m
	}
	was, is := index(a), index(b)
	for d := range was {
		if _, ok := is[d]; !ok {
			is[d] = facts{}
		}
	}
	for d, f := range is {
		o := was[d]
		if f.balance != o.balance || f.close != o.close {
			n++
		}
		if f.alert != o.alert || f.fell != o.fell {
			n++
		}
	}
	return n
}

func TestGeneratedHistoriesLoadIntoTheirConfiguration(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Seed: 1}, {Seed: 2, Keys: 20, Transactions: 3_000}, {Seed: 3, Law: Short, Keys: 10, Days: 5}, {Seed: 4, Law: LongDeep, Keys: 4, Days: 60},
		{Seed: 5, Law: LongShallow, Keys: 4, Days: 60, Transactions: 500}, {Seed: 6, Law: Retail, Keys: 5, Days: 60, Transactions: 500}, {Seed: 7, Conflicts: 5},
	} {
		t.Run(o.Law.String(), func(t *testing.T) {
			t.Parallel()
			var file, again, config bytes.Buffer
			for _, w := range []*bytes.Buffer{&file, &again} {
				if err := Generate(w, o); err != nil {
					t.Fatal(err)
				}
			}
			if sha256.Sum256(file.Bytes()) != sha256.Sum256(again.Bytes()) {
				t.Error("the same options give two histories")
			}
			if err := WriteConfig(&config, "demo", o); err != nil {
				t.Fatal(err)
			}
			const incarnation = "kafka:00112233445566778899aabbccddeeff"
			cfg, err := manifest.ParseConfig(config.Bytes(), incarnation)
			if err != nil {
				t.Fatal(err)
			}
			if o.Law == Mixed && o.Keys == 0 {
				standard, err := manifest.Default("demo", incarnation)
				if err != nil || standard.Digest() != cfg.Digest() {
					t.Errorf("one key is not the default configuration: %v %v", err, manifest.Differences(standard, cfg))
				}
			}
			judged, log := judge(o.Setting()), NewLog(cfg)
			for line := range bytes.Lines(file.Bytes()) {
				a, code, problem := wire.ParseValue(line[:len(line)-1])
				if code != 0 {
					t.Fatalf("%q: %v", line, problem)
				}
				rec := log.Record(a)
				if v := judged.Add(rec.Partition, rec.Offset, rec.Key, rec.Value); v.Rejection != 0 {
					t.Fatalf("%q: %s", line, v.Rejection)
				}
			}
			blocked := 0
			for e := range judged.All() {
				if e.Status.Blocked {
					blocked++
				}
			}
			if blocked > 0 && o.Conflicts == 0 {
				t.Errorf("%d keys are blocked", blocked)
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, bytes.ErrTooLarge }

func TestGenerateReturnsTheWritersError(t *testing.T) {
	t.Parallel()
	if err := Generate(full{}, Options{}); err == nil {
		t.Error("no error")
	}
	if err := WriteConfig(full{}, "demo", Options{}); err == nil {
		t.Error("no error")
	}
}
