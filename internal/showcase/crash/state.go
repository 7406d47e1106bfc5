package crash

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"amends/internal/ledger"
	"amends/internal/showcase/account"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
)

// measure reads durable state in one snapshot, keeps it as the last and as a moment of the step.
func (r *run) measure(ctx context.Context, s *account.Step, when string) error {
	state, err := r.state(ctx)
	if err != nil {
		return err
	}
	s.Moments = append(s.Moments, account.Moment{When: when, At: now(), State: state})
	r.last = state
	return nil
}

// state reads everything: positions, and a digest over every journal row and every view row.
func (r *run) state(ctx context.Context) (account.State, error) {
	var out account.State
	err := r.namespace.Look(ctx, func(s *reader.Snapshot) error {
		states, err := s.Partitions(ctx)
		if err != nil {
			return err
		}
		for _, at := range states {
			p := positions(at)
			if err := readJournal(ctx, s, at.Partition, &p); err != nil {
				return err
			}
			story, err := readView(ctx, s, at.Partition, &p)
			if err != nil {
				return err
			}
			out.Partitions = append(out.Partitions, p)
			out.Story = append(out.Story, story...)
		}
		return nil
	})
	return out, err
}

// positions are the numbers of a partition that cost nothing to read.
func positions(at store.PartitionState) account.Partition {
	p := account.Partition{Partition: int32(at.Partition), Epoch: int64(at.Owned.Token.Epoch), Frontier: int64(at.Owned.Frontier), Sequence: int64(at.Owned.Sequence)}
	if at.Relay != nil {
		p.RelayTerm, p.RelaySequence = at.Relay.Term, int64(at.Relay.Sequence)
	}
	if at.View != nil {
		p.ViewTerm, p.ViewSequence, p.ViewFrontier = at.View.Term, int64(at.View.Sequence), int64(at.View.Output)
	}
	return p
}

// readJournal counts and digests a partition's journal rows.
func readJournal(ctx context.Context, s *reader.Snapshot, at ledger.Partition, p *account.Partition) error {
	sum, b := sha256.New(), []byte(nil)
	err := s.Journal(ctx, at, func(d *ledger.Decision) error {
		p.JournalRows++
		b = strconv.AppendInt(b[:0], int64(d.Offset), 10)
		b = append(b, d.Digest[:]...)
		for i, c := range d.Changes {
			b = fmt.Appendf(b, " %d %v %v %d %t %d %d", int64(d.Sequence)+int64(i), c.Kind, c.Day, c.Version, c.Present, c.Close, c.Previous)
		}
		b = append(b, '\n')
		sum.Write(b)
		return nil
	})
	p.JournalDigest = hex.EncodeToString(sum.Sum(nil))
	return err
}

// readView counts and digests a partition's view rows and returns those of the story.
func readView(ctx context.Context, s *reader.Snapshot, at ledger.Partition, p *account.Partition) (story []account.Row, err error) {
	sum, b := sha256.New(), []byte(nil)
	err = s.ViewRows(ctx, at, func(row store.ViewRow) error {
		p.ViewRows++
		if !row.Present {
			p.ViewWithdrawn++
		}
		b = fmt.Appendf(b[:0], "%q %q %v %v %d %d %t %d %d %d\n", row.ID.Key.Item, row.ID.Key.Location, row.ID.Day, row.ID.Kind, row.Version, row.Sequence,
			row.Present, row.Close, row.Previous, row.Digest)
		sum.Write(b)
		if row.ID.Key == storyKey() {
			story = append(story, storyRow(row))
		}
		return nil
	})
	p.ViewDigest = hex.EncodeToString(sum.Sum(nil))
	return story, err
}

func storyRow(row store.ViewRow) account.Row {
	out := account.Row{Kind: row.ID.Kind.String(), Version: int64(row.Version), Present: row.Present}
	if row.ID.Kind != ledger.TrustStatus {
		out.Day = row.ID.Day.String()
		if row.Present {
			out.Close = &row.Close
		}
	}
	return out
}

// every returns whether a condition holds for each partition, by one light look.
func (r *run) every(ctx context.Context, holds func(account.Partition) bool) func() (bool, error) {
	return func() (bool, error) {
		all := true
		err := r.namespace.Look(ctx, func(s *reader.Snapshot) error {
			states, err := s.Partitions(ctx)
			for _, at := range states {
				all = all && holds(positions(at))
			}
			return err
		})
		return all && err == nil, err
	}
}

// settle waits until everything loaded is decided, published with a receipt, and in the view.
func (r *run) settle(ctx context.Context) error {
	ends, err := r.Admin.Ends(ctx, r.manifest.SourceTopic)
	if err != nil {
		return err
	}
	return r.await(ctx, "everything loaded is in the view", r.every(ctx, func(p account.Partition) bool {
		return p.Frontier >= int64(ends[p.Partition]) && p.RelaySequence == p.Sequence && p.ViewSequence == p.Sequence
	}))
}

// backend looks at the server's process of that id.
func (r *run) backend(ctx context.Context, pid int32) (b reader.Backend, running bool, err error) {
	err = r.namespace.Look(ctx, func(s *reader.Snapshot) error {
		b, running, err = s.Backend(ctx, pid)
		return err
	})
	return b, running, err
}
