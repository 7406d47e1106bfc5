package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"amends/internal/delivery"
	"amends/internal/ledger"
	"amends/internal/sim/choice"
	"amends/internal/sim/fault"
	"amends/internal/sim/serial"
	"amends/internal/verify"
)

// Result is what one schedule came to. Violation is nil where everything held.
type Result struct {
	Violation *serial.Violation
	Answers   []byte   // that replay it
	Trace     []string // where it was asked for
	Hash      uint64   // of the trace
	Faults    fault.Counts
	Events    int
}

// Corpus is what schedules choose their source from. It is safe for concurrent use once made.
type Corpus struct{ histories []*serial.History }

// NewCorpus makes the histories 0 to serial.Histories-1.
func NewCorpus() (*Corpus, error) {
	c := &Corpus{}
	for seed := range uint64(serial.Histories) {
		h, err := serial.New(seed)
		if err != nil {
			return nil, err
		}
		c.histories = append(c.histories, h)
	}
	return c, nil
}

// Limits of a schedule, in turns.
const (
	leastTurns = 24
	healTurns  = 3_000
	// brokenTurns is how soon a topic that was created again is noticed by all who have to do with it.
	brokenTurns = 100
)

// Play runs one schedule: trouble first, then healing, then everything must hold. keep asks for the text of its trace.
func (c *Corpus) Play(pick *choice.Source, keep bool) (*Result, error) {
	return c.play(pick, keep, canary{})
}

// canary takes a guard out, to see that schedules find it missing. The zero value takes out nothing.
type canary struct {
	store    func(namespace) namespace
	producer func(delivery.Producer) delivery.Producer
}

// play is Play with a guard taken out.
func (c *Corpus) play(pick *choice.Source, keep bool, without canary) (*Result, error) {
	h := pick.One(len(c.histories))
	w, err := newWorld(c.histories[h], pick, keep, without)
	if err != nil {
		return nil, err
	}
	w.say("history", int64(h), 0)
	w.shape()
	w.safety()
	if w.violation == nil {
		w.heal()
	}
	if w.violation == nil {
		w.verify(pick.One(2) == 1)
	}
	return &Result{Violation: w.violation, Answers: pick.Taken(), Trace: w.trace.text, Hash: w.trace.hash, Faults: w.faults, Events: w.events}, nil
}

// shape chooses the sizes and how much goes wrong.
func (w *World) shape() {
	heat := w.pick.One(5)
	w.callTrouble = [...]int{0, 15, 40, 100, 5}[heat]
	w.turnTrouble = [...]int{0, 60, 100, 100, 250}[heat]
	w.page = [...]int{0, 1, 3}[w.pick.One(3)]
	w.snapshotRows = [...]int64{0, 1, 2}[w.pick.One(3)]
	w.tiny = w.pick.One(2) == 1
	for slot := range w.members { // made before the choices that they read
		w.members[slot] = w.newMember(slot)
	}
	for p := range w.books {
		w.move(ledger.Partition(p), w.members[p%2])
	}
}

// safety is the phase with trouble.
func (w *World) safety() {
	for turns := leastTurns + 20*w.pick.One(4); turns > 0 && w.violation == nil; turns-- {
		w.befall()
		if !w.turn() || w.converged() && w.pick.One(4) == 0 {
			return
		}
	}
}

// heal ends all trouble: what is on its way arrives, services are back, processes that ended are started again, and
// those that were paused go on as if nothing had happened. Everything must then come to an end by itself.
func (w *World) heal() {
	w.say("heals", 0, 0)
	w.healing, w.databaseBack, w.brokerBack = true, 0, 0
	for len(w.pending) > 0 {
		w.finish(w.pending[0].row)
	}
	w.effects++
	for _, a := range w.actors() {
		a.paused = false
	}
	turns := healTurns
	if w.broken {
		turns = brokenTurns
	}
	for ; turns > 0 && (w.broken || !w.converged()) && w.violation == nil; turns-- {
		if !w.broken {
			w.revive()
		}
		w.turn()
	}
	switch {
	case w.violation != nil:
	case w.broken:
		w.noticed()
	case turns == 0:
		w.violate("healing", "%s", w.where())
	default:
		if err := serial.AtRest(context.Background(), w.ns.Snapshot, w.books); err != nil {
			w.violate("rest", "read snapshot: %v", err)
		}
	}
}

// noticed checks that no worker still reads a topic that was created again (I23).
func (w *World) noticed() {
	for _, m := range w.members {
		for p := range m.seats {
			if m.seats[p].fetches && m.alive() && identify(w.source, w.history.Manifest.Config.SourceIncarnation) != nil {
				w.violate("I23", "worker %d still reads partition %d of another source", m.id, p)
			}
		}
	}
}

// revive starts what has ended, and gives away partitions without an owner.
func (w *World) revive() {
	for n, a := range w.actors() {
		if a.dead || a.retired {
			w.restart(n)
		}
	}
	for p, owner := range w.owners {
		if owner == nil || owner.dead || owner.retired || owner.seats[p].lost || owner.seats[p].part == nil && !owner.seats[p].rejoin {
			if to := w.heir(ledger.Partition(p)); to != nil {
				w.move(ledger.Partition(p), to)
			}
		}
	}
}

// converged reports whether everything is processed, published, acknowledged and applied.
func (w *World) converged() bool {
	for p, b := range w.books {
		n := ledger.Sequence(len(b.Part.Outputs))
		if b.Frontier != b.Part.End || b.Sequence != n || b.Receipted != n || b.Applied != n || w.written[p] < len(b.Part.Writes) {
			return false
		}
	}
	return true
}

// where says how far everything came.
func (w *World) where() string {
	s := ""
	for p, b := range w.books {
		s += fmt.Sprintf("partition %d: frontier %d of %d, sequence %d, published %d, receipts %d, applied %d of %d; ", p, b.Frontier, b.Part.End, b.Sequence, b.Published, b.Receipted, b.Applied, len(b.Part.Outputs))
	}
	return s
}

// verify runs the production verifier and compares its status with what the serial model says at the cut (I19).
func (w *World) verify(live bool) {
	ctx := context.Background()
	m := w.history.Manifest
	healing, back := w.healing, w.brokerBack
	w.healing, w.brokerBack = true, 0
	defer func() { w.healing, w.brokerBack = healing, back }()
	v := client{&actor{w: w, id: 99}}
	open := func(name, want string) func() (verify.Reader, error) {
		return func() (verify.Reader, error) { return &reader{client: v, topic: w.topic(name), want: want}, nil }
	}
	job := verify.Job{Manifest: m, Topics: v, Store: w.ns, Source: open(serial.SourceName, m.Config.SourceIncarnation), Output: open(serial.OutputName, m.Output.Incarnation),
		Guard: func(ctx context.Context) (verify.Guard, error) {
			return w.db.GuardSource(ctx, m.Config.SourceIncarnation)
		}, Timeout: time.Minute, Live: live, Deep: !w.ahead()}
	report, err := job.Run(ctx)
	if err != nil {
		w.violate("I19", "verification: %v", err)
		return
	}
	w.say("verified "+string(report.Status), 0, 0)
	if want := w.expected(); report.Status != want {
		w.violate("I19", "verification says %s, the serial model %s: %s first %+v", report.Status, want, w.where(), report.First)
	}
}

// ahead reports whether a view holds what its worker has still to decide again, after a promotion that lost it: a deep
// verification would miss it in the journal.
func (w *World) ahead() bool {
	return slices.ContainsFunc(w.books, func(b *serial.Books) bool { return b.Applied > b.Sequence })
}

// expected says what a verification must find now.
func (w *World) expected() verify.Status {
	if w.broken {
		return verify.Unavailable
	}
	blocked := 0
	for _, b := range w.books {
		cut := b.Frontier
		if b.Applied != b.Sequence {
			cut = 0
			if b.Applied > 0 {
				cut = ledger.Frontier(b.Part.Outputs[b.Applied-1].Cause) + 1
			}
		}
		blocked += b.Part.BlockedAt(cut)
	}
	if blocked > 0 {
		return verify.Blocked
	}
	return verify.Pass
}
