package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pause"
	"amends/internal/store"
	"amends/internal/view"
)

// ViewOptions say what a view materializes and from where. Zero limits are the defaults of this package.
type ViewOptions struct {
	Config *manifest.Config
	Store  ViewStore
	Topic  Topic
	Logger *slog.Logger
	// PageOutputs bounds the outputs of a page, PageRows the rows that they are; one repair may exceed both.
	PageOutputs int
	PageRows    int
	// Ahead reads on while a page is being committed. NewView sets it; a simulator that wants one order of events does not.
	Ahead bool
	// Pause waits between the attempts of a commit; nil for the machine's clock.
	Pause Pause
}

func (o ViewOptions) withDefaults() ViewOptions {
	if o.PageOutputs == 0 {
		o.PageOutputs = share(ViewPageOutputs, viewOutputs, o.Topic.Partitions)
	}
	if o.PageRows == 0 {
		o.PageRows = min(ViewPageRows, o.PageOutputs)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Pause == nil {
		o.Pause = pause.For
	}
	return o
}

// ViewStepper materializes one partition under one lease: whole repairs, each page one transaction (S9).
type ViewStepper struct {
	opts    ViewOptions
	lease   store.Lease
	reader  Reader
	decider *view.Decider
	changes []store.ViewChange
	failure error         // of a read beside a commit: the next read's
	until   time.Time     // when the page in hand is to be committed at the latest
	took    time.Duration // to commit the last large page
	dry     bool          // the last read returned nothing
	refused bool          // the store refused the page, and it was decided again on its rows
	lagging bool          // the topic held more at the last read
}

var _ Stepper = (*ViewStepper)(nil)

// NewViewStepper returns the view of the lease's partition. It reads nothing before the first Step.
func NewViewStepper(o ViewOptions, l store.Lease) *ViewStepper {
	return &ViewStepper{opts: o.withDefaults(), lease: l}
}

// Step reads records, or loads rows, or commits one page. A partition that is stopped returns a *StoppedError.
func (s *ViewStepper) Step(ctx context.Context) (Progress, error) {
	pr, err := s.step(ctx)
	if err != nil {
		return pr, fmt.Errorf("view partition %d: %w", s.lease.Partition, err)
	}
	return pr, nil
}

func (s *ViewStepper) step(ctx context.Context) (Progress, error) {
	if s.decider == nil {
		if err := s.open(ctx); err != nil {
			return Progress{}, err
		}
	}
	demand := s.decider.Decide()
	if demand == view.NeedRows {
		return Progress{}, s.load(ctx)
	}
	if demand == view.NeedRecords && s.decider.Held() < s.opts.PageOutputs {
		if wait := s.grow(); wait > 0 {
			return s.read(ctx, wait) // a larger page writes the versions of one output once
		}
	}
	if pg := s.decider.Page(); !pg.Empty() {
		return s.commit(ctx, pg)
	}
	return s.read(ctx, pollWait)
}

// grow is how long the page may wait for more records: while the topic is known to hold more, and after a large page for a
// few times as long as that took to commit, so that what a busy view costs follows the rows that differ and not the versions.
func (s *ViewStepper) grow() time.Duration {
	if s.lagging {
		return growWait
	}
	if s.dry || s.decider.Held() == 0 {
		return 0
	}
	return min(time.Until(s.until), max(gapWait, s.took/8))
}

// open begins at the stored position. The reader refuses one beyond the broker's end.
func (s *ViewStepper) open(ctx context.Context) error {
	p := s.lease.Partition
	pos, err := s.opts.Store.ViewPosition(ctx, p)
	if err != nil {
		return err
	}
	if pos.Stopped {
		return &StoppedError{Partition: p, Offset: ledger.Offset(pos.Output)}
	}
	if pos.Term != s.lease.Term || pos.Nonce != s.lease.Nonce {
		return fmt.Errorf("the position has term %d, the lease %d: %w", pos.Term, s.lease.Term, store.ErrFence)
	}
	r, err := s.opts.Topic.NewReader()
	if err != nil {
		return err
	}
	if err := r.Seek(ctx, p, pos.Output); err != nil {
		r.Close()
		return err
	}
	s.reader = r
	s.decider = view.New(s.opts.Config, p, view.Position{Output: pos.Output, Sequence: pos.Sequence, Cause: pos.Cause}, s.opts.PageOutputs)
	s.decider.LimitRows(s.opts.PageRows)
	return nil
}

// read waits for records. When none come in a wait that was not for a larger page, an incomplete repair that rests on
// assumptions is checked: what a page holds besides is committed by then.
func (s *ViewStepper) read(ctx context.Context, most time.Duration) (Progress, error) {
	if err := s.failure; err != nil {
		s.failure = nil
		return Progress{}, err
	}
	op, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	s.lagging = false
	fetched, err := s.poll(op)
	s.dry = len(fetched) == 0
	switch {
	case len(fetched) > 0 && (err == nil || away(err)):
		return Progress{}, nil
	case err == nil, errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		if most >= pollWait && s.decider.Pending() > 0 && s.decider.Assumed() {
			s.decider.Exact()
		}
		return Progress{}, nil
	}
	return Progress{}, err
}

// poll reads what the topic has into the decider.
func (s *ViewStepper) poll(ctx context.Context) ([]broker.Fetched, error) {
	fetched, err := s.reader.Poll(ctx)
	for _, f := range fetched {
		if f.Partition == s.lease.Partition {
			s.decider.Read(f.Records, f.Next)
			s.lagging = ledger.Frontier(f.Stable) > f.Next
		}
	}
	return fetched, err
}

// ahead reads on beside a commit until it is done, or as much is held as two pages may.
func (s *ViewStepper) ahead(ctx context.Context, committing *task) {
	op, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		<-committing.done
	}()
	for s.failure == nil && op.Err() == nil && s.decider.Held() < 2*s.opts.PageOutputs {
		fetched, err := s.poll(op)
		if err == nil || op.Err() != nil && errors.Is(err, op.Err()) || len(fetched) > 0 && away(err) {
			continue
		}
		s.failure = err
	}
}

// load gives the decider the rows that it asks for.
func (s *ViewStepper) load(ctx context.Context) error {
	ids := s.decider.Missing()
	stored, err := s.opts.Store.ViewRows(ctx, s.lease.Partition, ids)
	if err != nil {
		return err
	}
	rows := make(map[ledger.OutputID]view.Row, len(stored))
	for id, r := range stored {
		rows[id] = view.Row{Version: r.Version, Digest: r.Digest}
	}
	s.decider.Supply(ids, rows)
	return nil
}

// commit applies a page. A store that refuses its versions makes the decider look at the rows, once.
func (s *ViewStepper) commit(ctx context.Context, pg view.Page) (Progress, error) {
	in, began := s.input(pg), time.Now()
	committing := begin(!s.opts.Ahead, func() error {
		return settle(ctx, s.opts.Pause,
			func(ctx context.Context) error { return s.opts.Store.ApplyViewInput(ctx, s.lease, in) },
			func(ctx context.Context) (bool, error) { return s.written(ctx, in) })
	})
	if s.opts.Ahead {
		s.ahead(ctx, committing)
	}
	err := committing.join()
	switch {
	case err == nil:
	case errors.Is(err, store.ErrProtocol) && !s.refused:
		s.refused = true
		s.decider.Exact()
		return Progress{}, nil
	case errors.Is(err, store.ErrProtocol):
		return Progress{}, fmt.Errorf("page refused that was decided on its rows: %w: %w", store.ErrIntegrity, err)
	default:
		return Progress{}, err
	}
	s.refused = false
	applied := int(pg.Next.Sequence - pg.Before.Sequence)
	if v := pg.Stop; v != nil {
		s.opts.Logger.Error("protocol violation: the partition is stopped", "partition", s.lease.Partition, "offset", v.Offset, "reason", v.String())
		return Progress{Outputs: applied}, &StoppedError{Partition: s.lease.Partition, Offset: v.Offset, Reason: v.String()}
	}
	s.decider.Committed()
	s.until = time.Time{}
	if now := time.Now(); s.opts.Ahead && len(in.Changes) >= patientRows {
		s.took, s.dry = now.Sub(began), false
		s.until = now.Add(min(patience*s.took, mostPatience))
	}
	return Progress{Outputs: applied}, nil
}

// written reads the position after an unknown commit: before or after the page; anything else is not for this process.
func (s *ViewStepper) written(ctx context.Context, in *store.ViewPage) (bool, error) {
	pos, err := s.opts.Store.ViewPosition(ctx, s.lease.Partition)
	if err != nil {
		return false, err
	}
	switch pos {
	case in.Next:
		return true, nil
	case in.Before:
		return false, nil
	}
	if pos.Term != s.lease.Term || pos.Nonce != s.lease.Nonce {
		return false, fmt.Errorf("the position has term %d, the lease %d: %w", pos.Term, s.lease.Term, store.ErrFence)
	}
	return false, fmt.Errorf("position %+v is neither before nor after the page, %+v to %+v: %w", pos, in.Before, in.Next, store.ErrIntegrity)
}

// input writes a page in the store's terms. Its memory is used again for the next.
func (s *ViewStepper) input(pg view.Page) *store.ViewPage {
	s.changes = s.changes[:0]
	for i := range pg.Changes {
		c := &pg.Changes[i]
		e := c.Envelope
		s.changes = append(s.changes, store.ViewChange{Before: c.Before, Row: store.ViewRow{
			ID: e.Output, Status: e.Status,
			Cause:    store.Cause{TxnID: e.Cause.TxnID, Offset: e.Cause.Offset, Revision: e.Cause.Revision, Partition: e.Cause.Partition},
			Sequence: e.Sequence, Version: e.Version, Close: e.Close, Previous: e.Previous, Threshold: e.Threshold,
			Digest: c.Digest, Index: int32(e.Index), Count: int32(e.Count), Present: e.Present,
		}})
	}
	in := &store.ViewPage{Partition: s.lease.Partition, Changes: s.changes, Before: s.position(pg.Before), Next: s.position(pg.Next)}
	if v := pg.Stop; v != nil {
		in.Stop = &store.Violation{Partition: s.lease.Partition, Offset: v.Offset, Reason: v.String(), Key: v.Key, Value: v.Value}
		in.Next.Stopped = true
	}
	return in
}

func (s *ViewStepper) position(p view.Position) store.ViewPosition {
	return store.ViewPosition{Term: s.lease.Term, Nonce: s.lease.Nonce, Output: p.Output, Sequence: p.Sequence, Cause: p.Cause}
}

// Close closes the reader. What was read and not committed is read again.
func (s *ViewStepper) Close() {
	if s.reader != nil {
		s.reader.Close()
	}
	*s = ViewStepper{opts: s.opts, lease: s.lease}
}
