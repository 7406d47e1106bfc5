package sim

import (
	"testing"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pace"
	"amends/internal/sim/choice"
	"amends/internal/sim/fault"
	"amends/internal/sim/serial"
	"amends/internal/sim/topic"
	"amends/internal/wire"
)

// twoRecords is the smallest source with something to repair: a receipt and its correction.
func twoRecords(t *testing.T) *serial.History {
	t.Helper()
	cfg, err := manifest.Default("sim", topic.Incarnation(serial.SourceID))
	if err != nil {
		t.Fatal(err)
	}
	one := *cfg
	one.Partitions = 1
	if cfg, err = manifest.New(one); err != nil {
		t.Fatal(err)
	}
	key := cfg.StockKeys[0].Key
	var writes []serial.Write
	for _, a := range []ledger.Assertion{
		{Key: key, TxnID: "T-1", Revision: 1, Payload: ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Day: cfg.LedgerOrigin, Quantity: 100}},
		{Key: key, TxnID: "T-1", Revision: 2, Payload: ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Day: cfg.LedgerOrigin, Quantity: 70}},
	} {
		writes = append(writes, serial.Write{Key: wire.AppendKey(nil, key), Value: wire.AppendAssertion(nil, a)})
	}
	h, err := serial.Make(cfg, [][]serial.Write{writes})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// model is two workers at one partition with two records: the first owns it, the second takes it over at some point.
type model struct {
	*World
	taken bool
	both  int // turns in which either may go
}

// Every outcome of every call, every point of a takeover (also while a call is on its way), every way in which it happens
// and every order of the turns after it, with one and with two calls that go wrong.
// Shows I4.
func TestFenceExhaustively(t *testing.T) {
	h := twoRecords(t)
	for _, c := range []struct {
		name             string
		troubles, orders int
		least            int
	}{
		{"one trouble", 1, 4, 5_000},
		{"two troubles", 2, 0, 20_000},
	} {
		if c.troubles > 1 && schedules(t) < exhaustive {
			continue
		}
		if c.orders > 0 && pace.Of(10) < 10 {
			c.orders, c.least = 1, c.least/10
		}
		t.Run(c.name, func(t *testing.T) {
			var fenced int64
			n := choice.Explore(func(pick *choice.Source) bool {
				w, err := newWorld(h, pick, false, canary{})
				if err != nil {
					t.Fatal(err)
				}
				m := &model{World: w, both: c.orders}
				w.callTrouble, w.budget, w.single, w.meddle = 1, c.troubles, true, m.between
				m.run()
				fenced += w.faults[fault.Fenced]
				if w.violation != nil {
					t.Errorf("%v: %v", pick.Taken(), w.violation)
				}
				return !t.Failed()
			})
			t.Logf("figure: %d executions, %d refused as fenced", n, fenced)
			if n < c.least || fenced == 0 {
				t.Errorf("%d executions of at least %d, %d refused", n, c.least, fenced)
			}
		})
	}
}

// The model finds a fence that is missing.
func TestFenceModelMissesTheFence(t *testing.T) {
	h := twoRecords(t)
	found := ""
	choice.Explore(func(pick *choice.Source) bool {
		w, err := newWorld(h, pick, false, canary{store: func(ns namespace) namespace { return &blind{namespace: ns, fence: true} }})
		if err != nil {
			t.Fatal(err)
		}
		m := &model{World: w, both: 4}
		w.callTrouble, w.budget, w.single, w.meddle = 1, 1, true, m.between
		m.run()
		if w.violation != nil {
			found = w.violation.Invariant
		}
		return found == ""
	})
	if found != "I4" {
		t.Errorf("found %q, want I4", found)
	}
}

func (m *model) run() {
	for range m.history.Parts[0].Writes {
		m.write(0)
	}
	m.move(0, m.members[0])
	for range 60 {
		if !m.taken && m.pick.One(2) == 1 {
			m.takeover(m.pick.One(3))
		}
		first := 0
		if m.taken && m.both > 0 && m.ready(0) && m.ready(1) {
			m.both--
			first = m.pick.One(2)
		}
		if !m.act(first) && !m.act(1-first) {
			break
		}
	}
	if m.violation == nil {
		m.heal()
	}
}

// takeover gives the partition to the second worker: asked, unasked, or because the first is dead.
func (m *model) takeover(how int) {
	m.taken = true
	switch a := &m.members[0].actor; how {
	case 0:
		m.expire(0)
	case 1:
		m.move(0, m.members[1])
	case 2:
		a.dead, a.retired = true, true
		m.expire(0)
	}
}

// between is what may happen while a call is on its way: the takeover, and some turns of the second worker.
func (m *model) between(a *actor, _ row) {
	if !m.taken && a == &m.members[0].actor {
		m.taken = true
		m.expire(0)
	}
	for range m.pick.One(5) {
		m.act(1)
	}
}

// ready reports whether a worker has something to do.
func (m *model) ready(slot int) bool { return m.first(slot) != nil }

func (m *model) first(slot int) *task {
	for i := range m.tasks {
		t := &m.tasks[i]
		if t.slot != slot || t.kind != toPoll && t.kind != toStep {
			continue
		}
		s := &m.members[slot].seats[0]
		if due, _ := m.World.due(t); due && (t.kind == toPoll || !s.idle || s.lost) {
			return t
		}
	}
	return nil
}

func (m *model) act(slot int) bool {
	t := m.first(slot)
	if t == nil {
		return false
	}
	_, when := m.World.due(t)
	m.now = max(m.now, when)
	m.World.run(t)
	return true
}
