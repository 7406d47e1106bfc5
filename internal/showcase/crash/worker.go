package crash

import (
	"context"
	"fmt"
	"time"

	"amends/fixtures"
	"amends/internal/showcase/account"
	"amends/internal/showcase/barrier"
	"amends/internal/store/postgres/reader"
)

// The prepared statements by which a transaction is known: each runs in no other kind of transaction.
const (
	workerWrites = "advance"           // moves the frontier over decisions
	viewUpserts  = "replace_view_rows" // replaces rows
	viewMoves    = "move_view"         // moves the view's position
)

// gone bounds the wait for the end of a server's process whose client is gone.
const gone = 10 * time.Second

// held waits until a transaction of a process is held, and looks at its backend.
func (r *run) held(ctx context.Context, h *barrier.Hold) (b reader.Backend, running bool, err error) {
	err = r.await(ctx, "the process is where it is to be held", func() (bool, error) {
		select {
		case <-h.Reached():
			return true, nil
		default:
			return false, nil
		}
	})
	if err != nil {
		return b, false, err
	}
	return r.backend(ctx, h.Backend())
}

// kill ends a held process by SIGKILL, in the named phase, and waits until the server has noticed.
func (r *run) kill(ctx context.Context, s *account.Step, c *child, h *barrier.Hold, b reader.Backend, phase string) error {
	k := account.Kill{At: event(s, "SIGKILL to process %d", c.child.PID()), Process: c.name, PID: c.child.PID(), Signal: "SIGKILL", Phase: phase,
		Backend: h.Backend(), BackendState: b.State}
	began := time.Now()
	if err := c.kill(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, gone, fmt.Errorf("not within %v", gone))
	defer cancel()
	running := true
	err := r.await(bounded, "the server's process is gone", func() (_ bool, err error) {
		_, running, err = r.backend(bounded, h.Backend())
		return !running, err
	})
	if err != nil {
		return err
	}
	k.BackendGone = seconds(time.Since(began))
	r.account.Kills = append(r.account.Kills, k)
	s.Findings = append(s.Findings, ended(c.name, c.child.PID(), c.end(), "SIGKILL"), rolledBack(h.Backend(), running, k.BackendGone))
	return nil
}

// killWorker publishes the correction and kills the worker that decides it, its writes with the server, COMMIT held back.
func (r *run) killWorker(ctx context.Context, s *account.Step) error {
	before := r.last
	hold := r.worker.Arm(barrier.Point{Statement: workerWrites, Moment: barrier.BeforeCommit})
	if err := r.tell(ctx, s, "story-2.jsonl", fixtures.Correction); err != nil {
		return err
	}
	b, running, err := r.held(ctx, hold)
	if err != nil {
		return err
	}
	event(s, "COMMIT of server process %d is held back", hold.Backend())
	s.Findings = append(s.Findings, written(b, running))
	if err := r.measure(ctx, s, "COMMIT is held back"); err != nil {
		return err
	}
	s.Findings = append(s.Findings, same("what is durable", before, r.last, allFields()))
	if err := r.kill(ctx, s, r.source, hold, b, "after its writes, before COMMIT"); err != nil {
		return err
	}
	if err := r.measure(ctx, s, "the worker is dead"); err != nil {
		return err
	}
	s.Findings = append(s.Findings, same("after the kill, what is durable", before, r.last, allFields()), told(movements(), r.last))
	return nil
}

// tell publishes records of the story.
func (r *run) tell(ctx context.Context, s *account.Step, name, records string) error {
	if err := r.write(name, []byte(records)); err != nil {
		return err
	}
	_, err := r.load(ctx, s, name)
	return err
}

// recoverWorker starts another worker, which decides the correction once.
func (r *run) recoverWorker(ctx context.Context, s *account.Step) (err error) {
	before, began := r.last, time.Now()
	if r.source, err = r.spawn(s, "worker 2", "source", r.worker.URL()); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	event(s, "the correction is in the view after %.1f s", time.Since(began).Seconds())
	// Every partition is claimed anew, also one without new records.
	claimed := func(p account.Partition) bool { return p.Epoch > before.Partitions[p.Partition].Epoch }
	if err := r.await(ctx, "the new worker owns every partition", r.every(ctx, claimed)); err != nil {
		return err
	}
	if err := r.measure(ctx, s, "the new worker has decided"); err != nil {
		return err
	}
	was, is := before.Partitions[0], r.last.Partitions[0]
	s.Findings = append(s.Findings, taken("epoch", before, r.last, func(p account.Partition) int64 { return p.Epoch }),
		moved("source frontier", was.Frontier, is.Frontier, 1), moved("journal rows", was.JournalRows, is.JournalRows, 1),
		moved("next sequence", was.Sequence, is.Sequence, 5), moved("view sequence", was.ViewSequence, is.ViewSequence, 5),
		told(corrected(), r.last))
	return nil
}

// drain waits until everything loaded is in the view, and counts what the output topic holds.
func (r *run) drain(ctx context.Context, s *account.Step) error {
	if err := r.settle(ctx); err != nil {
		return err
	}
	sourceEnds, err := r.ends(ctx, r.account.SourceTopic)
	if err != nil {
		return err
	}
	outputEnds, err := r.ends(ctx, r.account.OutputTopic)
	if err != nil {
		return err
	}
	if err := r.measure(ctx, s, "drained"); err != nil {
		return err
	}
	s.Findings = append(s.Findings, drained(r.last, sourceEnds, outputEnds, r.repeated)...)
	return nil
}

// ends returns the end offsets of a topic by partition.
func (r *run) ends(ctx context.Context, topic string) ([]int64, error) {
	ends, err := r.Admin.Ends(ctx, topic)
	out := make([]int64, len(ends))
	for i, e := range ends {
		out[i] = int64(e)
	}
	return out, err
}

// stop ends the processes that still run, in the order of the data.
func (r *run) stop(_ context.Context, s *account.Step) error {
	for _, c := range []*child{r.source, r.relay, r.viewer} {
		event(s, "SIGTERM to process %d", c.child.PID())
		if err := c.terminate(); err != nil {
			return err
		}
		s.Findings = append(s.Findings, ended(c.name, c.child.PID(), c.end(), "exit code 0"))
	}
	return nil
}
