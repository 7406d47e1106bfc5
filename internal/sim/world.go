package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"amends/internal/broker"
	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/sim/choice"
	"amends/internal/sim/fault"
	"amends/internal/sim/serial"
	"amends/internal/sim/topic"
	"amends/internal/store"
	"amends/internal/store/memory"
	"amends/internal/worker"
)

// World is one schedule: the services in memory, the actors, and what must hold. One goroutine has all of it.
type World struct {
	history *serial.History
	pick    *choice.Source
	without canary
	meddle  func(*actor, row) // instead of interleave, where a model says who acts between
	db      *memory.DB
	ns      namespace
	source  *topic.Topic
	output  *topic.Topic
	books   []*serial.Books
	written []int // of each partition's plan

	members [2]*member
	posts   []*post // two relays and two views a partition
	tasks   []task
	owners  []*member // of each partition, as the group believes
	claimer []*actor  // whose claim took effect last
	holding map[store.Role][]*post
	pending []pending

	standby      *memory.Standby
	standbyBooks []*serial.Books

	now          time.Duration
	waited       time.Duration // within the present step of a delivery
	databaseBack time.Duration
	brokerBack   time.Duration

	trace     trace
	faults    fault.Counts
	violation *serial.Violation

	snapshotRows int64
	events       int
	effects      int64 // what may wake those who had nothing to do
	holders      int
	next         int // task
	depth        int
	page         int
	budget       int // calls that may still go wrong; below 0 any number
	callTrouble  int // per mille of calls
	turnTrouble  int // per mille of turns
	tiny         bool
	single       bool // readers return one record or marker at a time
	healing      bool
	lossy        bool
	broken       bool // a topic is not the one it was: roles stop for good
}

// actor is a process.
type actor struct {
	w       *World
	id      int
	readyAt time.Duration
	busy    bool // it waits for an answer while others act
	paused  bool
	killed  bool // it dies as soon as it would go on
	retired bool // it has ended: it may ask for nothing any more
	dead    bool
}

// task is something that can be due.
type task struct {
	kind      taskKind
	slot      int
	partition ledger.Partition
}

type taskKind uint8

const (
	toWrite taskKind = iota
	toPoll
	toStep
	toPost
)

func newWorld(h *serial.History, pick *choice.Source, keep bool, without canary) (*World, error) {
	n := len(h.Parts)
	w := &World{history: h, pick: pick, without: without, budget: -1, trace: trace{hash: fnvOffset, keep: keep}, written: make([]int, n), owners: make([]*member, n), claimer: make([]*actor, n),
		source: topic.New(serial.SourceName, serial.SourceID, int32(n)), output: topic.New(serial.OutputName, serial.OutputID, int32(n)),
		holding: map[store.Role][]*post{store.Relay: make([]*post, n), store.View: make([]*post, n)}}
	w.db = memory.NewWithClock(w.clock)
	ctx := context.Background()
	ns, err := w.db.Init(ctx, h.Manifest.Config, serial.SourceName)
	if err != nil {
		return nil, fmt.Errorf("open simulated store: %w", err)
	}
	if err := ns.Bind(ctx, *h.Manifest.Output); err != nil {
		return nil, fmt.Errorf("open simulated store: %w", err)
	}
	w.ns = ns
	if without.store != nil {
		w.ns = without.store(ns)
	}
	for p := range n {
		at := ledger.Partition(p)
		w.books = append(w.books, serial.NewBooks(at, &h.Parts[p], w.source.Log(at), w.output.Log(at), w.violate))
		w.tasks = append(w.tasks, task{toWrite, 0, at})
	}
	for slot := range w.members {
		w.members[slot] = w.newMember(slot)
		w.tasks = append(w.tasks, task{toPoll, slot, 0})
		for p := range n {
			w.tasks = append(w.tasks, task{toStep, slot, ledger.Partition(p)})
		}
	}
	for slot := range 4 * n {
		w.posts = append(w.posts, w.newPost(slot, roleOf(slot), ledger.Partition(slot/4)))
		w.tasks = append(w.tasks, task{toPost, slot, ledger.Partition(slot / 4)})
	}
	return w, nil
}

// roleOf says what the posts of a partition are: a relay, a view, and a standby of each.
func roleOf(slot int) store.Role {
	if slot%2 == 0 {
		return store.Relay
	}
	return store.View
}

// clock is logical time.
func (w *World) clock() time.Time { return time.Unix(1_800_000_000, 0).Add(w.now) }

// pause is a logical wait, within the budget of an operation.
func (w *World) pause(_ context.Context, d time.Duration) error {
	w.now += d
	if w.waited += d; w.waited > worker.RetryBudget {
		return context.DeadlineExceeded
	}
	return nil
}

func (w *World) count(f fault.Kind) {
	w.faults[f]++
	w.say(f.String(), 0, 0)
}

// trouble asks what goes wrong with a call that has so many ways; 0 is nothing.
func (w *World) trouble(ways int) int { return w.troubled(ways, w.callTrouble) }

func (w *World) troubled(ways, perMille int) int {
	if w.healing || perMille == 0 || w.budget == 0 {
		return fine
	}
	way := w.pick.Seldom(ways, perMille)
	if way != fine {
		w.budget--
	}
	if w.depth > 0 && (way == between || way == betweenAfter) {
		return fine
	}
	return way
}

// cut asks how much of what there is a reader returns.
func (w *World) cut(all int) int {
	switch {
	case w.single:
		return min(all, 1)
	case w.healing, all < 2:
		return all
	}
	n := w.pick.Seldom(min(all, 4), 300)
	if n > 0 {
		w.faults[fault.PageCut]++
		return n
	}
	return all
}

func (w *World) topic(name string) *topic.Topic {
	if name == serial.SourceName {
		return w.source
	}
	return w.output
}

func (w *World) revoked(a *actor, p ledger.Partition) bool {
	m := w.members[a.id%2]
	return &m.actor == a && m.seats[p].revoked
}

// turn makes the next actor that has something to do, do it; it reports whether there was one.
func (w *World) turn() bool {
	for {
		skip := 0
		if !w.healing {
			skip = w.pick.Seldom(6, 350)
		}
		var first, chosen *task
		wake := time.Duration(-1)
		at := 0
		for i := range w.tasks {
			k := (w.next + i) % len(w.tasks)
			t := &w.tasks[k]
			due, when := w.due(t)
			switch {
			case !due:
			case when > w.now:
				if wake < 0 || when < wake {
					wake = when
				}
			case skip > 0:
				skip--
				if first == nil {
					first, at = t, k
				}
			default:
				chosen, at = t, k
			}
			if chosen != nil {
				break
			}
		}
		if chosen == nil {
			chosen = first
		}
		switch {
		case chosen != nil:
			w.next = at + 1
			w.now += 10 * time.Millisecond
			w.run(chosen)
			return true
		case wake < 0:
			return false
		}
		w.now = wake
	}
}

// due reports whether a task is to be done, and from when on.
func (w *World) due(t *task) (bool, time.Duration) {
	switch t.kind {
	case toWrite:
		return w.written[t.partition] < len(w.history.Parts[t.partition].Writes), 0
	case toPoll:
		m := w.members[t.slot]
		return m.alive() && m.pollable(), 0
	case toStep:
		m := w.members[t.slot]
		s := &m.seats[t.partition]
		if !m.alive() {
			return false, 0
		}
		return s.lost || s.rejoin || s.part != nil && !s.done, s.readyAt
	}
	x := w.posts[t.slot]
	if !x.leased || x.seen != x.signal() {
		return x.alive(), x.readyAt
	}
	return x.alive(), x.renewed + lease.Renew
}

func (a *actor) alive() bool { return !a.dead && !a.retired && !a.paused && !a.busy }

// pollable reports whether a poll would find anything.
func (m *member) pollable() bool {
	for p := range m.seats {
		s := &m.seats[p]
		if s.fetches && !s.held && (s.seek || m.w.source.Log(ledger.Partition(p)).Stable() > s.at || identify(m.w.source, m.w.history.Manifest.Config.SourceIncarnation) != nil) {
			return true
		}
	}
	return false
}

// run does a task.
func (w *World) run(t *task) {
	w.events++
	w.say(taskNames[t.kind], int64(t.slot), int64(t.partition))
	switch t.kind {
	case toWrite:
		w.write(t.partition)
	case toPoll:
		m := w.members[t.slot]
		w.within(&m.actor, m.poll)
	case toStep:
		m := w.members[t.slot]
		w.within(&m.actor, func() {
			switch s := &m.seats[t.partition]; {
			case s.lost:
				m.revoke(t.partition, true)
			case s.rejoin:
				m.assign(t.partition)
			default:
				m.step(t.partition)
			}
		})
	case toPost:
		x := w.posts[t.slot]
		w.within(&x.actor, x.turn)
	}
}

var taskNames = [...]string{toWrite: "write", toPoll: "member polls", toStep: "member steps", toPost: "post turns"}

// within runs what an actor does until it is done, ends by an error, or dies.
func (w *World) within(a *actor, do func()) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case crash:
			if r.of != a {
				panic(r)
			}
			w.say("dies", int64(a.id), 0)
			a.dead, a.retired = true, true
		default:
			panic(r)
		}
	}()
	do()
	if m := w.members[a.id%2]; &m.actor == a {
		if m.err != nil && !m.retired {
			m.end()
		}
	} else if x := w.posts[a.id%len(w.posts)]; &x.actor == a && x.err != nil && !x.retired {
		x.end()
	}
}

// write lets the source's writer do the next thing of its plan.
func (w *World) write(p ledger.Partition) {
	writes := w.history.Parts[p].Writes
	x := &writes[w.written[p]]
	w.written[p]++
	if x.Kind != serial.Plain {
		w.faults[fault.Transaction]++
	}
	if w.source.Log(p) != w.books[p].Source { // a topic of the same name holds something else
		x = &writes[len(writes)-w.written[p]]
	}
	x.Do(w.source.Log(p))
}

// ended judges the error that a role ended with: integrity stops need a cause.
func (w *World) ended(role string, err error) {
	w.say(role+" ends", 0, 0)
	if w.trace.keep {
		w.trace.text = append(w.trace.text, err.Error())
	}
	var identity *broker.IdentityError
	var outside *broker.RangeError
	stop := errors.Is(err, worker.ErrIntegrity) || errors.Is(err, store.ErrIntegrity) || errors.Is(err, store.ErrProtocol) || errors.As(err, &identity) || errors.As(err, &outside)
	if stop && !w.broken {
		w.violate("stop", "%s ends with an integrity stop and nothing is wrong: %v", role, err)
	}
	if errors.Is(err, store.ErrExhausted) {
		w.violate("stop", "%s ends: %v", role, err)
	}
}

// free returns the members that may be given partitions.
func (w *World) free() []*member {
	return slices.DeleteFunc(slices.Clone(w.members[:]), func(m *member) bool { return !m.alive() })
}
