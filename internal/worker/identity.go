package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"amends/internal/broker"
)

// identity keeps a recent look at the source topic, so that no commit trusts one older than LookAge. Who finds it fresh
// does not wait for a look in progress.
type identity struct {
	topics      Topics
	clock       func() time.Time
	topic       string
	incarnation string
	seen        atomic.Pointer[time.Time] // when the last good look began; nil before the first
	missing     time.Time                 // since when there is no such topic; zero while there is one
	looking     gate                      // held while looking; guards missing
	partitions  int32
}

// check returns nil if the topic was the right one less than LookAge ago, looking again if need be. An error that
// stopsTopic is final; any other means that the broker is away.
func (i *identity) check(ctx context.Context) error {
	if i.fresh() {
		return nil
	}
	if err := i.looking.within(ctx); err != nil {
		return err
	}
	defer i.looking.unlock()
	if i.fresh() {
		return nil
	}
	return i.look(ctx)
}

func (i *identity) fresh() bool {
	seen := i.seen.Load()
	return seen != nil && i.clock().Sub(*seen) < LookAge
}

// refresh looks now, whatever is known.
func (i *identity) refresh(ctx context.Context) error {
	if err := i.looking.within(ctx); err != nil {
		return err
	}
	defer i.looking.unlock()
	return i.look(ctx)
}

func (i *identity) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, OperationTimeout)
	defer cancel()
	began := i.clock()
	t, err := i.topics.Topic(ctx, i.topic)
	if !errors.Is(err, broker.ErrNoTopic) {
		i.missing = time.Time{}
	} else if i.missing.IsZero() {
		i.missing = began
	}
	if !i.missing.IsZero() && began.Sub(i.missing) >= missingGrace {
		return &broker.IdentityError{Topic: i.topic, What: "incarnation", Want: i.incarnation, Found: "none: there is no such topic"}
	}
	if err != nil {
		return err
	}
	if err := broker.CheckIdentity(t, i.incarnation, i.partitions); err != nil {
		return err
	}
	i.seen.Store(&began)
	return nil
}
