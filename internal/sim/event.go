package sim

import (
	"time"

	"amends/internal/ledger"
	"amends/internal/sim/fault"
	"amends/internal/store"
)

// eventKinds are what befalls actors and services between turns; 0 is nothing.
const (
	rebalances = 1 + iota
	expires
	pauses
	resumes
	kills
	restarts
	jumps
	databaseLeaves
	brokerLeaves
	promotes
	copies
	promotesLossy
	arrives
	repeats
	recreates
	shortens
	verifies
	eventKinds
)

// befall lets something happen, or nothing.
func (w *World) befall() {
	kind := w.pick.Seldom(eventKinds, w.turnTrouble)
	if kind == 0 {
		return
	}
	w.events++
	p := ledger.Partition(0)
	if len(w.books) > 1 {
		p = ledger.Partition(w.pick.One(len(w.books)))
	}
	switch kind {
	case rebalances:
		w.rebalance(p)
	case expires:
		w.expire(p)
	case pauses, resumes, kills, restarts:
		w.handle(kind)
	case jumps:
		w.jump([]time.Duration{time.Second, 4 * time.Second, 25 * time.Second}[w.pick.One(3)])
	case databaseLeaves:
		w.count(fault.DatabaseAway)
		w.databaseBack = w.now + []time.Duration{300 * time.Millisecond, 5 * time.Second, 30 * time.Second}[w.pick.One(3)]
	case brokerLeaves:
		w.count(fault.BrokerAway)
		w.brokerBack = w.now + []time.Duration{300 * time.Millisecond, 5 * time.Second}[w.pick.One(2)]
	case promotes:
		w.count(fault.Promoted)
		w.db.Promote()
		w.effects++
	case copies:
		w.copyStandby()
	case promotesLossy:
		w.promoteLossy()
	case arrives:
		w.finish(row{role: "send", partition: p})
		w.finish(row{partition: p})
		w.finish(row{store.Relay, p})
		w.finish(row{store.View, p})
	case repeats:
		w.repeat(p)
	case recreates, shortens:
		w.breakTopic(kind)
	case verifies:
		w.verify(true)
	}
}

// interleave lets others act while a call of a is on its way to a row.
func (w *World) interleave(a *actor, r row) {
	if w.depth > 0 || w.healing {
		return
	}
	w.count(fault.Between)
	w.depth++
	a.busy = true
	defer func() {
		w.depth--
		a.busy = false
	}()
	if w.meddle != nil {
		w.meddle(a, r)
	} else {
		w.disturb(a, r)
	}
	if a.killed {
		w.count(fault.Killed)
		panic(crash{a})
	}
}

// disturb lets something happen, and others have their turns.
func (w *World) disturb(a *actor, r row) {
	p := r.partition
	switch w.pick.One(8) {
	case 0:
	case 1:
		if r.role == "" {
			w.expire(p)
		} else {
			w.jump(4 * time.Second)
		}
	case 2:
		w.count(fault.Promoted)
		w.db.Promote()
	case 3:
		w.promoteLossy()
	case 4:
		w.jump(25 * time.Second)
	case 5:
		a.killed = true
	case 6:
		w.finish(r)
	case 7:
		w.breakTopic(recreates)
	}
	for range w.pick.One(8) {
		if !w.turn() {
			break
		}
	}
}

// rebalance moves a partition to another member, or to one that there is, in order.
func (w *World) rebalance(p ledger.Partition) {
	to := w.heir(p)
	if to == nil {
		return
	}
	w.count(fault.Rebalance)
	w.move(p, to)
}

// heir returns who gets a partition next: another member than its owner, if one can.
func (w *World) heir(p ledger.Partition) *member {
	for _, m := range w.free() {
		if m != w.owners[p] {
			return m
		}
	}
	if m := w.owners[p]; m != nil && m.alive() {
		return m
	}
	return nil
}

// move takes a partition from its owner, who is asked where it can be, and gives it to another.
func (w *World) move(p ledger.Partition, to *member) {
	from := w.owners[p]
	w.owners[p] = nil
	switch {
	case from == nil || from.dead || from.retired:
	case !from.alive():
		from.seats[p].lost = true
	default:
		w.within(&from.actor, func() { from.revoke(p, false) })
	}
	if !to.alive() {
		return // the answer to the revoke was its last
	}
	w.owners[p] = to
	w.within(&to.actor, func() {
		if to.seats[p].lost {
			to.revoke(p, true)
		}
		if to.err == nil {
			to.assign(p)
		}
	})
}

// expire gives a partition to another member without a word to its owner.
func (w *World) expire(p ledger.Partition) {
	from, to := w.owners[p], w.heir(p)
	if to == nil || to == from {
		return
	}
	w.count(fault.Expiry)
	if from != nil && !from.dead && !from.retired {
		from.seats[p].lost = true
	}
	w.owners[p] = nil
	w.move(p, to)
}

// actors returns every process.
func (w *World) actors() []*actor {
	all := make([]*actor, 0, len(w.members)+len(w.posts))
	for _, m := range w.members {
		all = append(all, &m.actor)
	}
	for _, x := range w.posts {
		all = append(all, &x.actor)
	}
	return all
}

// handle pauses, resumes, kills or restarts a process.
func (w *World) handle(kind int) {
	all := w.actors()
	n := w.pick.One(len(all))
	a := all[n]
	switch {
	case kind == pauses && a.alive():
		w.count(fault.Paused)
		a.paused = true
	case kind == resumes:
		a.paused = false
	case kind == kills && !a.dead && !a.retired && !a.busy:
		w.count(fault.Killed)
		a.dead, a.retired = true, true
	case kind == restarts && !a.busy:
		w.restart(n)
	}
}

// restart starts a process anew: one that still runs is stopped in order first.
func (w *World) restart(n int) {
	w.count(fault.Restarted)
	if n >= len(w.members) {
		n -= len(w.members)
		x := w.posts[n]
		if x.alive() {
			w.within(&x.actor, x.stop)
		}
		w.posts[n] = w.newPost(n, x.role, x.partition)
		return
	}
	m := w.members[n]
	if m.alive() {
		w.within(&m.actor, m.end)
	}
	for p, owner := range w.owners {
		if owner == m {
			w.owners[p] = nil
		}
	}
	w.members[n] = w.newMember(n)
}

func (w *World) jump(d time.Duration) {
	w.count(fault.ClockJump)
	w.now += d
	w.effects++ // those who wait look again
}

// copyStandby takes the standby server's state, which a promotion may go back to.
func (w *World) copyStandby() {
	w.standby = w.db.Standby()
	w.standbyBooks = w.standbyBooks[:0]
	for _, b := range w.books {
		w.standbyBooks = append(w.standbyBooks, b.Clone())
	}
}

// promoteLossy makes the standby the server: what was committed since is lost.
func (w *World) promoteLossy() {
	if w.standby == nil {
		return
	}
	w.count(fault.PromotedLossy)
	w.lossy = true
	w.db.PromoteStandby(w.standby)
	for i, b := range w.books {
		b.Restore(w.standbyBooks[i])
	}
	w.effects++
}

// repeat publishes again what the output topic holds, as a former holder may.
func (w *World) repeat(p ledger.Partition) {
	b := w.books[p]
	if b.Published == 0 || w.output.Log(p) != b.Output {
		return
	}
	first := w.pick.One(min(int(b.Published), 8))
	n := 1 + w.pick.One(3)
	for s := int(b.Published) - 1 - first; s < int(b.Published) && n > 0; s, n = s+1, n-1 {
		o := &b.Part.Outputs[s]
		w.receive(p, o)
		b.Output.Append(o.Key, o.Value, 0)
	}
	w.effects++
}

// breakTopic makes a topic one that no role may go on with.
func (w *World) breakTopic(kind int) {
	if w.broken || w.pick.One(8) != 7 { // seldom: nothing converges to PASS after it
		return
	}
	w.broken = true
	t := w.source
	if w.pick.One(2) == 1 {
		t = w.output
	}
	if kind == shortens {
		w.count(fault.Retention)
		t.Retention = 604_800_000
		return
	}
	w.count(fault.Recreated)
	t.Recreate(9)
	if t == w.source {
		for p := range w.written {
			w.written[p] = 0
		}
	}
	w.effects++
}
