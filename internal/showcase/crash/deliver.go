package crash

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"amends/fixtures"
	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/showcase/account"
	"amends/internal/showcase/barrier"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
	"amends/internal/wire"
)

// killViewBefore publishes the cancellation of the last day and kills the view before its upsert reaches the server.
func (r *run) killViewBefore(ctx context.Context, s *account.Step) error {
	before := r.last
	hold := r.view.Arm(barrier.Point{Statement: viewUpserts, Moment: barrier.BeforeStatement})
	if err := r.tell(ctx, s, "story-3.jsonl", fixtures.CancelLastDay); err != nil {
		return err
	}
	b, _, err := r.held(ctx, hold)
	if err != nil {
		return err
	}
	event(s, "the upsert of server process %d is held back", hold.Backend())
	if err := r.kill(ctx, s, r.viewer, hold, b, "before its upsert"); err != nil {
		return err
	}
	published := func(p account.Partition) bool { return p.RelaySequence == p.Sequence }
	if err := r.await(ctx, "the relay has its receipt", r.every(ctx, published)); err != nil {
		return err
	}
	if err := r.measure(ctx, s, "the view is dead"); err != nil {
		return err
	}
	was, is := before.Partitions[0], r.last.Partitions[0]
	s.Findings = append(s.Findings, same("after the kill, the view", before, r.last, viewFields()),
		moved("the withdrawal is decided and published all the same: relay sequence", was.RelaySequence, is.RelaySequence, 1), told(corrected(), r.last))
	return nil
}

// killViewAfter starts another view and kills it when its commit has taken place and the answer is held back.
func (r *run) killViewAfter(ctx context.Context, s *account.Step) (err error) {
	before := r.last
	hold := r.view.Arm(barrier.Point{Statement: viewMoves, Moment: barrier.AfterCommit})
	if r.viewer, err = r.spawn(s, "view 2", "view", r.view.URL()); err != nil {
		return err
	}
	b, _, err := r.held(ctx, hold)
	if err != nil {
		return err
	}
	event(s, "the answer to COMMIT of server process %d is held back", hold.Backend())
	if err := r.kill(ctx, s, r.viewer, hold, b, "after its commit, before the answer"); err != nil {
		return err
	}
	if err := r.measure(ctx, s, "the view is dead"); err != nil {
		return err
	}
	was, is := before.Partitions[0], r.last.Partitions[0]
	s.Findings = append(s.Findings, moved("view sequence", was.ViewSequence, is.ViewSequence, 1), moved("view rows", was.ViewRows, is.ViewRows, 0),
		moved("withdrawn rows", was.ViewWithdrawn, is.ViewWithdrawn, 1), told(withdrawn(), r.last))
	return nil
}

// oldDay is the day that the story withdraws.
const oldDay = "2026-01-03"

// deliverOlder publishes the first version of the withdrawn balance again, as a former relay could, and starts another view,
// which reads past it.
func (r *run) deliverOlder(ctx context.Context, s *account.Step) (err error) {
	before := r.last
	day, _ := ledger.ParseDay(oldDay)
	id := ledger.OutputID{Key: storyKey(), Day: day, Kind: ledger.Balance}
	at, err := r.offsetOf(ctx, id)
	if err != nil {
		return err
	}
	old, err := r.record(ctx, at)
	if err != nil {
		return err
	}
	again, err := r.publish(ctx, old)
	if err != nil {
		return err
	}
	event(s, "the record at output offset 0/%d is published again", at)
	r.repeated[0]++
	copied, err := r.record(ctx, again)
	if err != nil {
		return err
	}
	s.Findings = append(s.Findings, older(id, old, copied, at, again))
	if r.viewer, err = r.spawn(s, "view 3", "view", r.view.URL()); err != nil {
		return err
	}
	read := func(p account.Partition) bool { return p.Partition != 0 || p.ViewFrontier > int64(again) }
	if err := r.await(ctx, "the view has read past it", r.every(ctx, read)); err != nil {
		return err
	}
	if err := r.measure(ctx, s, "the view has read past the older record"); err != nil {
		return err
	}
	was, is := before.Partitions[0], r.last.Partitions[0]
	unmoved := viewFields()
	unmoved = append(unmoved[:1:1], unmoved[2:]...) // all but the view's frontier
	s.Findings = append(s.Findings, moved("view frontier", was.ViewFrontier, is.ViewFrontier, 1), same("the view", before, r.last, unmoved), told(withdrawn(), r.last))
	return nil
}

// older requires that the record delivered again is, byte for byte, version 1 of the output.
func older(id ledger.OutputID, old, copied ledger.SourceRecord, at, again ledger.Offset) account.Finding {
	e, err := wire.DecodeEnvelope(copied.Value)
	if err != nil {
		return account.Finding{Text: fmt.Sprintf("the record at output offset 0/%d is no envelope: %v", again, err)}
	}
	return account.Finding{OK: again > at && bytes.Equal(old.Value, copied.Value) && bytes.Equal(old.Key, copied.Key) && e.Output == id && e.Version == 1 && e.Present,
		Text: fmt.Sprintf("output offset 0/%d says again what 0/%d said: %s %s of %q at %q, version %d, close %d", again, at, e.Output.Day, e.Output.Kind,
			e.Output.Key.Item, e.Output.Key.Location, e.Version, e.Close)}
}

// offsetOf returns where in the output topic version 1 of an output of partition 0 lies, by journal and receipts.
func (r *run) offsetOf(ctx context.Context, id ledger.OutputID) (at ledger.Offset, err error) {
	err = r.namespace.Look(ctx, func(s *reader.Snapshot) error {
		sequence := ledger.Sequence(-1)
		err := s.Journal(ctx, 0, func(d *ledger.Decision) error {
			for i, c := range d.Changes {
				if d.Assertion.Key == id.Key && c.Day == id.Day && c.Kind == id.Kind && c.Version == 1 {
					sequence = d.Sequence + ledger.Sequence(i)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		receipts, err := s.Receipts(ctx, 0)
		if err != nil {
			return err
		}
		at, err = covered(receipts, sequence)
		return err
	})
	return at, err
}

// covered returns the offset at which a sequence lies.
func covered(receipts []store.Receipt, sequence ledger.Sequence) (ledger.Offset, error) {
	for _, r := range receipts {
		if sequence >= r.First && sequence < r.Next {
			return r.Offset + ledger.Offset(sequence-r.First), nil
		}
	}
	return 0, fmt.Errorf("find the older record: no receipt covers sequence %d", sequence)
}

// record reads one record of partition 0 of the output topic.
func (r *run) record(ctx context.Context, at ledger.Offset) (found ledger.SourceRecord, err error) {
	in, err := broker.NewReader(r.Broker, r.manifest.Output.Topic, r.manifest.Output.Incarnation)
	if err != nil {
		return found, err
	}
	defer in.Close()
	seen := false
	_, err = in.ReadTo(ctx, 0, ledger.Frontier(at), ledger.Frontier(at)+1, func(rec ledger.SourceRecord) error {
		rec.Key, rec.Value = bytes.Clone(rec.Key), bytes.Clone(rec.Value)
		found, seen = rec, true
		return nil
	})
	if err == nil && !seen {
		err = fmt.Errorf("read output offset 0/%d: no record there", at)
	}
	return found, err
}

// publish appends a record to partition 0 of the output topic.
func (r *run) publish(ctx context.Context, rec ledger.SourceRecord) (ledger.Offset, error) {
	out, err := broker.NewProducer(r.Broker, r.manifest.Output.Topic, r.manifest.Output.Incarnation)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	offsets, err := out.Produce(ctx, 0, []broker.Message{{Key: rec.Key, Value: rec.Value}})
	if err != nil {
		return 0, fmt.Errorf("publish the older record: %w", err)
	}
	return offsets[0], nil
}

// waits is what a role says when another process holds its lease.
const waits = "waiting for the lease"

// handOver starts a second relay, ends the first by SIGTERM, measures how long the standby takes, and lets it publish the
// second part of the history.
func (r *run) handOver(ctx context.Context, s *account.Step) error {
	before, first := r.last, r.relay
	second, err := r.spawn(s, "relay 2", "relay", r.Database)
	if err != nil {
		return err
	}
	if err := r.await(ctx, "the second relay waits", func() (bool, error) {
		return strings.Count(second.said(), waits) >= len(before.Partitions), nil
	}); err != nil {
		return err
	}
	h := &account.Handover{FromPID: first.child.PID(), ToPID: second.child.PID(), Signal: "SIGTERM"}
	h.At = event(s, "SIGTERM to process %d; the standby waits", first.child.PID())
	began := time.Now()
	first.killed = true
	stopped := make(chan error, 1)
	go func() { stopped <- first.child.Stop(syscall.SIGTERM, stopGrace) }()
	over := func(p account.Partition) bool { return p.RelayTerm > before.Partitions[p.Partition].RelayTerm }
	if err := r.await(ctx, "the standby holds every partition", r.every(ctx, over)); err != nil {
		return err
	}
	h.Seconds = seconds(time.Since(began))
	if err := <-stopped; err != nil {
		return err
	}
	first.note()
	r.relay, r.account.Handover = second, h
	if r.Records > 0 {
		if _, err := r.load(ctx, s, "history-2.jsonl"); err != nil {
			return err
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.measure(ctx, s, "the standby has published"); err != nil {
		return err
	}
	s.Findings = append(s.Findings, ended(first.name, first.child.PID(), first.end(), "exit code 0"),
		taken("relay term", before, r.last, func(p account.Partition) int64 { return p.RelayTerm }),
		account.Finding{OK: h.Seconds < stopGrace.Seconds(), Text: fmt.Sprintf("process %d took over %.3f s after the signal", h.ToPID, h.Seconds)})
	if r.Records > 0 {
		s.Findings = append(s.Findings, published(before, r.last))
	}
	return nil
}

// published requires that receipts were written since, for everything decided.
func published(was, is account.State) account.Finding {
	var n, pending int64
	for i, p := range is.Partitions {
		n += p.RelaySequence - was.Partitions[i].RelaySequence
		pending += p.Sequence - p.RelaySequence
	}
	return account.Finding{OK: n > 0 && pending == 0, Text: fmt.Sprintf("the new relay has published %d outputs, %d are pending", n, pending)}
}
