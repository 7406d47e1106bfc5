package crash

import (
	"slices"
	"strings"
	"testing"

	"amends/internal/ledger"
	"amends/internal/showcase/account"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
	"amends/internal/wire"
)

// sound is the state of two partitions with the movements of the story in the view.
func sound() account.State {
	return account.State{Story: movements(), Partitions: []account.Partition{
		{Partition: 0, Epoch: 2, Frontier: 3, Sequence: 5, JournalRows: 3, JournalDigest: "aaaaaaaaaaaaaaaa", RelayTerm: 1, RelaySequence: 5,
			ViewTerm: 1, ViewSequence: 5, ViewFrontier: 5, ViewRows: 5, ViewDigest: "bbbbbbbbbbbbbbbb"},
		{Partition: 1, Epoch: 1, RelayTerm: 1, ViewTerm: 1, JournalDigest: "cccccccccccccccc", ViewDigest: "dddddddddddddddd"},
	}}
}

// Each number and digest that a kill must leave alone is seen when it changes, on each partition.
func TestSameSeesEveryChange(t *testing.T) {
	t.Parallel()
	source := map[string]func(*account.Partition){
		"epoch":           func(p *account.Partition) { p.Epoch++ },
		"source frontier": func(p *account.Partition) { p.Frontier++ },
		"next sequence":   func(p *account.Partition) { p.Sequence++ },
		"journal rows":    func(p *account.Partition) { p.JournalRows-- },
		"journal digest":  func(p *account.Partition) { p.JournalDigest = "eeee" },
	}
	view := map[string]func(*account.Partition){
		"view sequence":  func(p *account.Partition) { p.ViewSequence++ },
		"view frontier":  func(p *account.Partition) { p.ViewFrontier++ },
		"view rows":      func(p *account.Partition) { p.ViewRows++ },
		"withdrawn rows": func(p *account.Partition) { p.ViewWithdrawn++ },
		"view digest":    func(p *account.Partition) { p.ViewDigest = "eeee" },
	}
	other := map[string]func(*account.Partition){
		"relay sequence": func(p *account.Partition) { p.RelaySequence++ },
	}
	for _, c := range []struct {
		changes map[string]func(*account.Partition)
		inView  bool
	}{{source, false}, {view, true}, {other, false}} {
		for name, change := range c.changes {
			for i := range 2 {
				was, is := sound(), sound()
				change(&is.Partitions[i])
				if f := same("it", was, is, allFields()); f.OK || !strings.Contains(f.Text, name) {
					t.Errorf("%s of partition %d changed: %+v", name, i, f)
				}
				if f := same("it", was, is, viewFields()); f.OK == c.inView {
					t.Errorf("%s of partition %d changed: the view is judged %v", name, i, f.OK)
				}
			}
		}
	}
	if f := same("it", sound(), sound(), allFields()); !f.OK {
		t.Errorf("nothing changed: %+v", f)
	}
	if f := same("it", sound(), account.State{}, allFields()); f.OK {
		t.Error("a state without partitions is the same")
	}
}

// The rows of the story are compared one by one: value, version, presence, and none too many.
func TestSC20ToldSeesEveryRow(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]account.Row{"movements": movements(), "corrected": corrected(), "withdrawn": withdrawn()} {
		if f := told(want, account.State{Story: slices.Clone(want)}); !f.OK {
			t.Errorf("%s: %+v", name, f)
		}
		for i := range want {
			for change, f := range map[string]func(*account.Row){
				"version":  func(r *account.Row) { r.Version++ },
				"presence": func(r *account.Row) { r.Present = !r.Present; r.Close = nil },
				"day":      func(r *account.Row) { r.Day = "2026-02-01" },
				"kind":     func(r *account.Row) { r.Kind += "s" },
				"close":    func(r *account.Row) { r.Present, r.Close = true, units(1) },
			} {
				found := slices.Clone(want)
				f(&found[i])
				if told(want, account.State{Story: found}).OK {
					t.Errorf("%s: another %s of row %d is not seen", name, change, i)
				}
			}
			if told(want, account.State{Story: slices.Delete(slices.Clone(want), i, i+1)}).OK {
				t.Errorf("%s: the absence of row %d is not seen", name, i)
			}
		}
		if told(want, account.State{Story: append(slices.Clone(want), ready())}).OK || told(want, account.State{}).OK {
			t.Errorf("%s: one row too many, or none, is not seen", name)
		}
	}
	// The tombstone of the story, by hand from S8's table: version 3, withdrawn.
	if got := rows(withdrawn()); !strings.Contains(got, "2026-01-03 withdrawn (v3)") || !strings.Contains(got, "2026-01-02 50 (v2)") {
		t.Error(got)
	}
}

func TestWrittenNeedsAnOpenTransaction(t *testing.T) {
	t.Parallel()
	open := reader.Backend{State: "idle in transaction", InTransaction: true, Wrote: true}
	if f := written(open, true); !f.OK {
		t.Errorf("%+v", f)
	}
	for name, f := range map[string]account.Finding{
		"gone":       written(open, false),
		"running":    written(reader.Backend{State: "active", InTransaction: true, Wrote: true}, true),
		"idle":       written(reader.Backend{State: "idle"}, true),
		"no writing": written(reader.Backend{State: "idle in transaction", InTransaction: true}, true),
	} {
		if f.OK {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestEndsAndMoves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f  account.Finding
		ok bool
	}{
		"killed":                    {ended("w", 1, "SIGKILL", "SIGKILL"), true},
		"exited instead of killed":  {ended("w", 1, "exit code 0", "SIGKILL"), false},
		"still running":             {ended("w", 1, "", "SIGKILL"), false},
		"killed instead of drained": {ended("w", 1, "SIGKILL", "exit code 0"), false},
		"moved by one":              {moved("n", 3, 4, 1), true},
		"moved twice":               {moved("n", 3, 5, 1), false},
		"not moved":                 {moved("n", 3, 3, 1), false},
		"server process gone":       {rolledBack(7, false, 0.1), true},
		"server process alive":      {rolledBack(7, true, 10), false},
		"taken by somebody":         {taken("term", sound(), terms(2, 2), relayTerm), true},
		"taken in part":             {taken("term", sound(), terms(2, 1), relayTerm), false},
		"no partition to take":      {taken("term", account.State{}, account.State{}, relayTerm), false},
		"decided":                   {decided(sound(), 3), true},
		"not all decided":           {decided(sound(), 4), false},
		"one decided twice":         {decided(sound(), 2), false},
		"nothing loaded":            {decided(account.State{}, 0), false},
		"published since":           {published(sound(), later(8, 8)), true},
		"pending":                   {published(sound(), later(8, 9)), false},
		"nothing published":         {published(sound(), sound()), false},
	} {
		if c.f.OK != c.ok {
			t.Errorf("%s: %+v", name, c.f)
		}
	}
	if f := owned(sound()); len(f) != 2 || !f[0].OK || !f[1].OK {
		t.Errorf("%+v", f)
	}
	nobody := sound()
	nobody.Partitions[1].ViewTerm = 0
	if f := owned(nobody); !f[0].OK || f[1].OK {
		t.Errorf("%+v", f)
	}
}

func relayTerm(p account.Partition) int64 { return p.RelayTerm }

func terms(relay ...int64) account.State {
	s := sound()
	for i, t := range relay {
		s.Partitions[i].RelayTerm = t
	}
	return s
}

func later(published, decided int64) account.State {
	s := sound()
	s.Partitions[0].RelaySequence, s.Partitions[0].Sequence = published, decided
	return s
}

// A record lost or doubled anywhere between source and view is seen at the drain.
func TestDrainedCountsEveryStage(t *testing.T) {
	t.Parallel()
	ok := func(findings []account.Finding) bool {
		return !slices.ContainsFunc(findings, func(f account.Finding) bool { return !f.OK })
	}
	s := sound()
	s.Partitions[0].ViewFrontier = 6
	if f := drained(s, []int64{3, 0}, []int64{6, 0}, []int64{1, 0}); !ok(f) {
		t.Errorf("%+v", f)
	}
	for name, f := range map[string][]account.Finding{
		"source record not decided":    drained(s, []int64{4, 0}, []int64{6, 0}, []int64{1, 0}),
		"output doubled at the topic":  drained(s, []int64{3, 0}, []int64{7, 0}, []int64{1, 0}),
		"output missing at the topic":  drained(s, []int64{3, 0}, []int64{5, 0}, []int64{1, 0}),
		"repetition not asked for":     drained(s, []int64{3, 0}, []int64{6, 0}, []int64{0, 0}),
		"record on the other":          drained(s, []int64{3, 0}, []int64{6, 1}, []int64{1, 0}),
		"a topic of fewer partitions":  drained(s, []int64{3}, []int64{6, 0}, []int64{1, 0}),
		"no partition":                 drained(account.State{}, nil, nil, nil),
		"output not in the view":       drained(func() account.State { s := sound(); s.Partitions[0].ViewSequence--; return s }(), []int64{3, 0}, []int64{5, 0}, []int64{0, 0}),
		"output without receipt":       drained(func() account.State { s := sound(); s.Partitions[0].RelaySequence--; return s }(), []int64{3, 0}, []int64{5, 0}, []int64{0, 0}),
		"view has not read everything": drained(sound(), []int64{3, 0}, []int64{6, 0}, []int64{1, 0}),
	} {
		if ok(f) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// What is delivered again must be the first version of the withdrawn output, byte for byte, and lie later.
func TestOlderIsTheFirstVersion(t *testing.T) {
	t.Parallel()
	day, _ := ledger.ParseDay("2026-01-03")
	id := ledger.OutputID{Key: storyKey(), Day: day, Kind: ledger.Balance}
	record := func(version ledger.Version, of ledger.OutputID) ledger.SourceRecord {
		e := wire.Envelope{Namespace: "n", Output: of, Version: version, Present: true, Close: 50, Sequence: 3, Count: 1,
			Cause: wire.Cause{TxnID: "T-3", Revision: 1, Offset: 2}}
		return ledger.SourceRecord{Key: wire.AppendKey(nil, of.Key), Value: wire.AppendEnvelope(nil, &e)}
	}
	first := record(1, id)
	if f := older(id, first, first, 3, 9); !f.OK {
		t.Errorf("%+v", f)
	}
	other := id
	other.Day++
	for name, f := range map[string]account.Finding{
		"another version": older(id, record(2, id), record(2, id), 3, 9),
		"another output":  older(id, record(1, other), record(1, other), 3, 9),
		"other bytes":     older(id, record(2, id), first, 3, 9),
		"not later":       older(id, first, first, 3, 3),
		"no envelope":     older(id, first, ledger.SourceRecord{Value: []byte("{}")}, 3, 9),
	} {
		if f.OK {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestCoveredFollowsReceipts(t *testing.T) {
	t.Parallel()
	receipts := []store.Receipt{{First: 0, Next: 5, Offset: 0}, {First: 5, Next: 7, Offset: 9}}
	for sequence, want := range map[ledger.Sequence]ledger.Offset{0: 0, 4: 4, 5: 9, 6: 10} {
		if at, err := covered(receipts, sequence); err != nil || at != want {
			t.Errorf("sequence %d lies at %d (%v), want %d", sequence, at, err, want)
		}
	}
	for _, sequence := range []ledger.Sequence{-1, 7} {
		if at, err := covered(receipts, sequence); err == nil {
			t.Errorf("sequence %d lies at %d", sequence, at)
		}
	}
}

// A step fails with its first finding that is not right, and where it looked at nothing.
func TestJudge(t *testing.T) {
	t.Parallel()
	good, bad := account.Finding{OK: true, Text: "good"}, account.Finding{Text: "bad"}
	if err := judge(account.Step{Name: "s", Findings: []account.Finding{good}}); err != nil {
		t.Error(err)
	}
	if err := judge(account.Step{Name: "s", Findings: []account.Finding{good, bad}}); err == nil || err.Error() != "step s: bad" {
		t.Error(err)
	}
	if err := judge(account.Step{Name: "s"}); err == nil {
		t.Error("a step that looked at nothing passes")
	}
}

// Each scenario has its steps in this order; the showcase has all of them.
func TestScenarios(t *testing.T) {
	t.Parallel()
	of := func(scenario Scenario) (names []string) {
		for _, s := range steps() {
			if s.only == "" || s.only == scenario {
				names = append(names, s.name)
			}
		}
		return names
	}
	if got := strings.Join(of(Crash), " "); got != "provision start history worker-killed worker-recovered drain verify stop" {
		t.Error(got)
	}
	if got := len(of(Showcase)); got != len(steps()) {
		t.Errorf("%d of %d steps", got, len(steps()))
	}
}
