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
)

// RelayOptions say what a relay publishes and where. Zero limits are the defaults of this package.
type RelayOptions struct {
	Config *manifest.Config
	Store  RelayStore
	Topic  Topic
	Logger *slog.Logger
	// PageOutputs and PageBytes bound a page; one output may exceed the bytes.
	PageOutputs int
	PageBytes   int
	// Serial does nothing beside a Step, so that a simulator sees one order of events.
	Serial bool
	// Current reports whether nobody else can have taken the lease yet: without it nothing is sent, so that a relay which the
	// database has not answered for a while does not repeat what its successor publishes. NewRelay sets it; nil for always.
	Current func(store.Lease) bool
	// Pause waits between the attempts of a receipt; nil for the machine's clock.
	Pause Pause
}

func (o RelayOptions) withDefaults() RelayOptions {
	if o.PageOutputs == 0 {
		o.PageOutputs = share(RelayPageOutputs, relayOutputs, o.Topic.Partitions)
	}
	if o.PageBytes == 0 {
		o.PageBytes = share(RelayPageBytes, relayBytes, o.Topic.Partitions)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Pause == nil {
		o.Pause = pause.For
	}
	if o.Current == nil {
		o.Current = func(store.Lease) bool { return true }
	}
	return o
}

// RelayStepper publishes one partition's outbox under one lease: in sequence order, exact bytes, a receipt for each
// acknowledged range (S9).
type RelayStepper struct {
	opts  RelayOptions
	lease store.Lease

	opened   bool
	tail     *scan // until the topic's tail is known
	pager    *pager
	producer Producer
	receipts receipts
	writing  *task // receipts
	building *task // next
	next     *page
	spare    *page
}

var _ Stepper = (*RelayStepper)(nil)

// NewRelayStepper returns the relay of the lease's partition. It reads nothing before the first Step.
func NewRelayStepper(o RelayOptions, l store.Lease) *RelayStepper {
	return &RelayStepper{opts: o.withDefaults(), lease: l}
}

// Step reads the topic's tail at first, and publishes one page of pending outputs after that.
func (s *RelayStepper) Step(ctx context.Context) (Progress, error) {
	pr, err := s.step(ctx)
	if err != nil {
		// Whatever was under way is found again: by the position, and by the tail of the topic.
		s.abandon()
	}
	if err == nil || !errors.Is(err, broker.ErrUnknownOutcome) || ctx.Err() != nil {
		return pr, err
	}
	s.opts.Logger.Warn("a publication's outcome is unknown: reading the topic's tail before anything is sent", "partition", s.lease.Partition, "cause", err)
	return Progress{Waiting: "a publication without a known outcome"}, nil
}

func (s *RelayStepper) step(ctx context.Context) (Progress, error) {
	if !s.opened {
		if err := s.open(ctx); err != nil {
			return Progress{}, fmt.Errorf("open relay of partition %d: %w", s.lease.Partition, err)
		}
	}
	if s.tail != nil {
		pr, err := s.scanTail(ctx)
		if err != nil {
			return pr, fmt.Errorf("scan tail of partition %d: %w", s.lease.Partition, err)
		}
		return pr, nil
	}
	pr, err := s.publish(ctx)
	if err != nil {
		return pr, fmt.Errorf("relay partition %d: %w", s.lease.Partition, err)
	}
	return pr, nil
}

// publish sends one page. Its receipt is written beside the next Steps; while it is in flight the next page is encoded.
func (s *RelayStepper) publish(ctx context.Context) (Progress, error) {
	if s.writing != nil && s.writing.finished() {
		if err := s.joinReceipts(); err != nil {
			return Progress{}, err
		}
	}
	pg, err := s.takePage(ctx)
	if err != nil {
		return Progress{}, err
	}
	if len(pg.messages) == 0 {
		s.spare = pg
		idle := s.writing == nil && s.receipts.outputs == 0
		s.writeReceipts(ctx)
		return Progress{Idle: idle || !s.writing.finished()}, nil
	}
	if pg.full {
		s.prefetch(ctx)
	}
	if !s.opts.Current(s.lease) {
		s.abandon() // whoever has it now goes on from the topic's tail, and so does this one if it is the same
		return Progress{Waiting: "the lease was not renewed in time"}, nil
	}
	if err := s.send(ctx, pg); err != nil {
		return Progress{}, err
	}
	n := len(pg.messages)
	if s.spare == nil {
		s.spare = pg
	}
	s.writeReceipts(ctx)
	if s.receipts.outputs > unreceipted {
		if err := s.joinReceipts(); err != nil {
			return Progress{}, err
		}
		s.writeReceipts(ctx)
	}
	return Progress{Outputs: n}, nil
}

func (s *RelayStepper) send(ctx context.Context, pg *page) error {
	if s.producer == nil {
		p, err := s.opts.Topic.NewProducer()
		if err != nil {
			return err
		}
		s.producer = p
	}
	sending, cancel := drained(ctx)
	defer cancel()
	offsets, err := s.producer.Produce(sending, s.lease.Partition, pg.messages)
	if err != nil {
		return err
	}
	if len(offsets) != len(pg.messages) {
		return fmt.Errorf("%d of %d outputs acknowledged: %w", len(offsets), len(pg.messages), broker.ErrUnknownOutcome)
	}
	s.receipts.add(s.lease.Partition, pg.first, offsets)
	return nil
}

// takePage returns the page that was encoded ahead, or encodes one now.
func (s *RelayStepper) takePage(ctx context.Context) (*page, error) {
	if s.building != nil {
		err := s.building.join()
		pg := s.next
		s.building, s.next = nil, nil
		return pg, err
	}
	pg := s.blank()
	return pg, s.pager.build(ctx, pg)
}

func (s *RelayStepper) prefetch(ctx context.Context) {
	pg := s.blank()
	s.next = pg
	s.building = begin(s.opts.Serial, func() error { return s.pager.build(ctx, pg) })
}

func (s *RelayStepper) blank() *page {
	pg := s.spare
	s.spare = nil
	if pg == nil {
		pg = &page{}
	}
	return pg
}

// writeReceipts writes what is acknowledged, unless that is under way.
func (s *RelayStepper) writeReceipts(ctx context.Context) {
	if s.writing != nil || s.receipts.outputs == 0 {
		return
	}
	ranges := s.receipts.take()
	s.writing = begin(s.opts.Serial, func() error {
		op, cancel := drained(ctx)
		defer cancel()
		return acknowledge(op, &s.opts, s.lease, ranges)
	})
}

func (s *RelayStepper) joinReceipts() error {
	if s.writing == nil {
		return nil
	}
	err := s.writing.join()
	s.writing = nil
	return err
}

// abandon forgets everything but the lease: the next Step begins at the stored position.
func (s *RelayStepper) abandon() {
	if s.building != nil {
		_ = s.building.join() // the page was not sent
	}
	_ = s.joinReceipts() // the position says what was written
	if s.producer != nil {
		s.producer.Close()
	}
	if s.tail != nil {
		s.tail.close()
	}
	*s = RelayStepper{opts: s.opts, lease: s.lease}
}

// Close writes the receipts of what was acknowledged, as far as that takes no longer than its grace, and closes the clients.
func (s *RelayStepper) Close() {
	err := s.joinReceipts()
	if err == nil && s.receipts.outputs > 0 {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		defer time.AfterFunc(closeGrace, cancel).Stop() // cancelled: a COMMIT without an answer outlives a deadline
		err = acknowledge(ctx, &s.opts, s.lease, s.receipts.take())
	}
	if err != nil {
		s.opts.Logger.Info("receipts left to the next tail scan", "partition", s.lease.Partition, "cause", err)
	}
	s.abandon()
}

// outboxBytes returns the exact record of a sequence that is in the outbox.
func (s *RelayStepper) outboxBytes(ctx context.Context, sequence ledger.Sequence) (key, value []byte, err error) {
	d, err := s.opts.Store.Outbox(ctx, s.lease.Partition, sequence)
	if err != nil {
		return nil, nil, err
	}
	if d == nil || sequence < d.Sequence || sequence >= d.Sequence+ledger.Sequence(len(d.Changes)) {
		return nil, nil, fmt.Errorf("sequence %d has a receipt and is not in the outbox: %w", sequence, store.ErrIntegrity)
	}
	return s.pager.expect(d, int(sequence-d.Sequence))
}
