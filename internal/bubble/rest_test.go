package bubble

import (
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"testing/synctest"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/roles"
	"amends/internal/sim/serial"
	"amends/internal/sim/topic"
	"amends/internal/verify"
)

// Limits of what follows the trouble, in virtual time.
const (
	settles = 3 * time.Minute  // everything processed, published, acknowledged and applied
	notices = time.Minute      // another topic under the name
	drains  = 15 * time.Second // a process that is asked to end
)

// recreate deletes a topic and makes one of the same name, with something else in it. What lay in it is kept first, while
// nobody can add to it.
func (w *world) recreate(name string) {
	if w.recreated != "" {
		return
	}
	for _, p := range w.procs {
		if l := p.current(); l != nil {
			l.net.flow.set(true)
		}
	}
	synctest.Wait()
	logs, err := w.dump(name)
	if err != nil {
		w.violate("harness", "read topic %s: %v", name, err)
		return
	}
	w.mu.Lock()
	w.recreated = name
	for p, log := range logs {
		if name == sourceName {
			w.limits[p] = log.End()
		} else {
			w.keep(p, log)
		}
	}
	w.mu.Unlock()
	err = w.cluster.DeleteTopic(name)
	if err == nil {
		_, err = w.create(name, int32(len(logs)))
	}
	if err != nil {
		w.violate("harness", "create topic %s again: %v", name, err)
	}
	if name == sourceName {
		w.author.other()
	}
	for _, p := range w.procs {
		if l := p.current(); l != nil {
			l.net.flow.set(false)
		}
	}
}

// keep makes a log what the books have of the output topic, under mu.
func (w *world) keep(p int, log *topic.Log) {
	for at := ledger.Offset(0); ledger.Frontier(at) < log.End(); at++ {
		if key, value, ok := log.Record(at); ok {
			w.books[p].Output.Append(key, value, 0)
		} else {
			w.broken("I7", "partition %d: a marker at output offset %d", p, at)
		}
	}
}

// other fills the new source with valid records in another order and writes no more of the plan.
func (a *writer) other() {
	a.close()
	for p := range a.written {
		writes := a.w.history.Parts[p].Writes
		a.ends[p] = 0
		a.written[p] = len(writes)
		for i := len(writes) - 1; i >= 0; i-- {
			if writes[i].Kind != serial.Plain {
				continue
			}
			if err := a.next(ledger.Partition(p), &writes[i]); err != nil {
				a.w.violate("harness", "write to the new topic: %v", err)
				return
			}
		}
	}
}

// heal ends all trouble and writes what is left.
func (w *world) heal() {
	w.mu.Lock()
	w.back = time.Time{}
	w.say("heals")
	w.mu.Unlock()
	w.striking.Lock()
	close(w.healed)
	for _, p := range w.procs {
		if l := p.current(); l != nil {
			l.paused.set(false)
			l.port.heal()
			l.net.heal()
		}
	}
	w.striking.Unlock()
	for p := range w.books {
		w.author.write(ledger.Partition(p), len(w.history.Parts[p].Writes))
	}
	w.author.close()
}

// converge waits until there is nothing left to do: everywhere, or for a topic that is another one until all have noticed.
func (w *world) converge() {
	limit, done := time.Now().Add(settles), w.settled
	if w.recreated != "" {
		limit, done = time.Now().Add(notices), w.alarmed
	}
	for !done() {
		if time.Now().After(limit) {
			w.violate("convergence", "not at rest after all trouble ended: %s", w.where())
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// settled reports whether everything that was written has reached the view.
func (w *world) settled() bool {
	ctx := context.Background()
	for p := range w.books {
		at := ledger.Partition(p)
		o, err := w.base.Observe(ctx, at)
		if err != nil || o.Frontier < w.books[p].Part.End {
			return false
		}
		relay, err := w.base.RelayPosition(ctx, at)
		if err != nil || relay.Sequence < o.Sequence {
			return false
		}
		view, err := w.base.ViewPosition(ctx, at)
		if err != nil || view.Sequence < o.Sequence {
			return false
		}
	}
	return true
}

// alarmed reports whether every process that the new topic concerns has ended because of it.
func (w *world) alarmed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(w.procs, func(p *proc) bool { return p.concerned(w.recreated) && !w.noticed[p.name] })
}

// concerned reports whether a process reads or writes a topic.
func (p *proc) concerned(topic string) bool {
	return slices.ContainsFunc(p.roles, func(r roles.Role) bool { return (r == roles.Source) == (topic == sourceName) })
}

func (w *world) where() string {
	ctx, text := context.Background(), ""
	for p := range w.books {
		at := ledger.Partition(p)
		o, _ := w.base.Observe(ctx, at)
		relay, _ := w.base.RelayPosition(ctx, at)
		view, _ := w.base.ViewPosition(ctx, at)
		text += fmt.Sprintf("partition %d: frontier %d of %d, sequence %d, published %d, applied %d; ", p, o.Frontier, w.books[p].Part.End, o.Sequence, relay.Sequence, view.Sequence)
	}
	return text + fmt.Sprintf("recreated %q, noticed by %v", w.recreated, w.noticed)
}

// finish asks every process to end and joins all that runs.
func (w *world) finish() {
	close(w.ending)
	began := time.Now()
	for _, p := range w.procs {
		if l := p.current(); l != nil {
			l.ask()
		}
	}
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		w.running.Wait()
	}()
	select {
	case <-joined:
	case <-time.After(drains):
		if w.log != nil {
			_ = pprof.Lookup("goroutine").WriteTo(lines{w}, 2)
		}
		w.violate("S12", "a process has not ended %v after it was asked to", time.Since(began))
		<-joined
	}
}

// check holds everything that happened against the serial model and an independent verification.
func (w *world) check() {
	w.verify()
	if w.recreated != outputName {
		logs, err := w.dump(outputName)
		if err != nil {
			w.violate("harness", "read topic %s: %v", outputName, err)
			return
		}
		w.mu.Lock()
		for p, log := range logs {
			w.keep(p, log)
		}
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for p, b := range w.books {
		w.audit(p, b)
	}
	if w.recreated != "" || w.violation != "" {
		return
	}
	if err := serial.AtRest(context.Background(), w.base.Snapshot, w.books); err != nil {
		w.broken("rest", "read snapshot: %v", err)
	}
}

// audit enters what was published, acknowledged and applied into a partition's books, each in its order.
func (w *world) audit(p int, b *serial.Books) {
	for at := ledger.Offset(0); ledger.Frontier(at) < b.Output.End(); at++ {
		key, value, _ := b.Output.Record(at)
		if b.Publish(key, value) {
			w.count("published again")
		}
		if w.violation != "" {
			return
		}
	}
	for _, r := range w.receipts[p] {
		b.Receipt(r.lease, r.pos, r.r)
	}
	for _, v := range w.pages[p] {
		b.View(v.lease, v.pos, v.page)
	}
}

// verify runs a deep verification and compares its status with the serial model's.
func (w *world) verify() {
	n := newNetwork(w.stack, func() {})
	options := w.broker(n, "verify", nil)
	admin, err := broker.Open(options)
	if err != nil {
		w.violate("harness", "open broker: %v", err)
		return
	}
	defer admin.Close()
	job := verify.Job{Manifest: w.m, Topics: admin, Store: w.base, Timeout: 30 * time.Second, Deep: true,
		Source: func() (verify.Reader, error) {
			return broker.NewReader(options, sourceName, w.m.Config.SourceIncarnation)
		},
		Output: func() (verify.Reader, error) { return broker.NewReader(options, outputName, w.m.Output.Incarnation) },
		Guard: func(ctx context.Context) (verify.Guard, error) {
			g, err := w.db.GuardSource(ctx, w.m.Config.SourceIncarnation)
			if err != nil {
				return nil, err
			}
			return g, nil
		}}
	report, err := job.Run(context.Background())
	if err != nil {
		w.violate("I19", "verification failed: %v", err)
		return
	}
	want := verify.Pass
	for _, b := range w.books {
		if b.Part.BlockedAt(b.Part.End) > 0 {
			want = verify.Blocked
		}
	}
	if w.recreated != "" {
		want = verify.Unavailable
	}
	if report.Status != want {
		w.violate("I19", "verification says %s, right is %s: first %+v, %s", report.Status, want, report.First, w.where())
	}
	w.tell("verified", string(report.Status))
}
