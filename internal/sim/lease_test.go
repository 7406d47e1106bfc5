package sim

import (
	"testing"
	"time"

	"amends/internal/pace"
	"amends/internal/sim/choice"
	"amends/internal/sim/fault"
	"amends/internal/store"
)

// leases is two posts of one role at one partition with two repairs to deliver: the first holds the lease, which expires
// at some point without its knowledge.
type leases struct {
	*World
	a, b  int // posts
	taken bool
	both  int
}

// The same as TestFenceExhaustively for the lease of a relay and of a view.
func TestLeasesExhaustively(t *testing.T) {
	h := twoRecords(t)
	for _, c := range []struct {
		role             store.Role
		troubles, orders int
		least            int
	}{
		{store.Relay, 1, 3, 3_000},
		{store.View, 1, 3, 1_000},
		{store.Relay, 2, 0, 10_000},
		{store.View, 2, 0, 5_000},
	} {
		if c.troubles > 1 && schedules(t) < exhaustive {
			continue
		}
		if c.orders > 0 && pace.Of(10) < 10 {
			c.orders, c.least = 1, c.least/10
		}
		t.Run(string(c.role), func(t *testing.T) {
			var fenced int64
			n := choice.Explore(func(pick *choice.Source) bool {
				w, err := newWorld(h, pick, false, canary{})
				if err != nil {
					t.Fatal(err)
				}
				m := &leases{World: w, both: c.orders}
				if c.role == store.View {
					m.a, m.b = 1, 3
				} else {
					m.a, m.b = 0, 2
				}
				m.run(c.troubles)
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

func (m *leases) run(troubles int) {
	m.healing = true // what comes before goes well
	m.single = true
	workers := &model{World: m.World}
	for range m.history.Parts[0].Writes {
		m.write(0)
	}
	m.move(0, m.members[0])
	for workers.act(0) {
	}
	if m.a == 1 {
		for m.act(0) {
		}
	}
	m.healing = false
	m.callTrouble, m.budget, m.meddle, m.page = 1, troubles, m.between, 1
	for range 60 {
		if !m.taken && m.pick.One(2) == 1 {
			m.takeover()
		}
		first, second := m.a, m.b
		if m.taken && m.both > 0 && m.ready(m.a) && m.ready(m.b) {
			m.both--
			if m.pick.One(2) == 1 {
				first, second = second, first
			}
		}
		if !m.act(first) && !(m.taken && m.act(second)) {
			break
		}
	}
	if m.violation == nil {
		m.heal()
	}
}

// takeover lets the lease of the first expire.
func (m *leases) takeover() {
	m.taken = true
	m.now += 4 * time.Second
	m.act(m.b)
}

func (m *leases) between(a *actor, _ row) {
	if !m.taken && a == &m.posts[m.a].actor {
		m.takeover()
	}
	for range m.pick.One(6) {
		m.act(m.b)
	}
}

// ready reports whether a post has something to do but renew its lease.
func (m *leases) ready(slot int) bool {
	x := m.posts[slot]
	return x.alive() && (x.leased && x.seen != x.signal() || !x.leased && x.readyAt <= m.now)
}

func (m *leases) act(slot int) bool {
	if !m.ready(slot) {
		return false
	}
	for i := range m.tasks {
		if t := &m.tasks[i]; t.kind == toPost && t.slot == slot {
			m.now = max(m.now, m.posts[slot].readyAt)
			m.World.run(t)
			return true
		}
	}
	return false
}
