package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"amends/bench/serial"
	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/wire"
)

// errEnough ends a measurement whose records are all done.
var errEnough = errors.New("all records are in the view")

// serialRun is the baseline at work.
type serialRun struct {
	*stand
	pipeline *serial.Pipeline
	amends   *amends
	start    *state
	output   broker.Topic
	cause    []atomic.Int64 // per partition: offset after the cause of the last output in the view
	last     []int64        // per partition: what cause reaches when everything is in the view
	applied  []atomic.Int64 // per partition: offset after the last record decided
	emitted  []atomic.Int64 // per partition: outputs in the view
}

// runSerial seeds the baseline, runs it for the limit or until all is done, and compares what both published.
func (s *stand) runSerial(ctx context.Context, name string, a *amends, st *state, o Options) (Speed, int64, error) {
	url, err := s.database(ctx, "serial_"+name)
	if err != nil {
		return Speed{}, 0, err
	}
	pipeline, err := serial.Open(ctx, url, a.manifest.Config)
	if err != nil {
		return Speed{}, 0, err
	}
	defer pipeline.Close()
	for k, b := range st.books() {
		if err := pipeline.Seed(ctx, k, b.seedSerial()); err != nil {
			return Speed{}, 0, err
		}
	}
	n := a.manifest.Config.Partitions
	r := &serialRun{stand: s, pipeline: pipeline, amends: a, start: st,
		cause: make([]atomic.Int64, n), last: make([]int64, n), applied: make([]atomic.Int64, n), emitted: make([]atomic.Int64, n)}
	for p := range n {
		at, err := a.ns.ViewPosition(ctx, ledger.Partition(p))
		if err != nil {
			return Speed{}, 0, err
		}
		r.last[p] = int64(at.Cause) + 1
		r.cause[p].Store(int64(st.frontiers[p]))
		if err := pipeline.Start(ctx, ledger.Partition(p), st.frontiers[p]); err != nil {
			return Speed{}, 0, err
		}
	}
	if r.output, err = s.admin.CreateTopic(ctx, "bench-"+name+"-serial", n, 1); err != nil {
		return Speed{}, 0, err
	}
	speed, err := r.run(ctx, o.Limit)
	if err != nil {
		return speed, 0, err
	}
	compared, err := r.compare(ctx)
	return speed, compared, err
}

// run drives a worker, a relay and a view a partition until the limit.
func (r *serialRun) run(ctx context.Context, limit time.Duration) (Speed, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	producer, err := broker.NewProducer(r.options, r.output.Name, r.output.Incarnation)
	if err != nil {
		return Speed{}, err
	}
	defer producer.Close()
	began, spent := time.Now(), r.processorTime()
	g, inner := errgroup.WithContext(limited)
	for p := range ledger.Partition(r.output.Partitions) {
		g.Go(func() error { return r.work(inner, p) })
		g.Go(func() error { return r.relay(inner, p, producer) })
		g.Go(func() error { return r.view(inner, p) })
	}
	g.Go(func() error { return r.watch(inner) })
	err = g.Wait()
	elapsed := time.Since(began)
	complete := errors.Is(err, errEnough)
	if limited.Err() != nil || complete {
		err = ctx.Err()
	}
	s := Speed{Elapsed: elapsed, Processor: r.processorTime() - spent}
	for p := range r.cause {
		end := r.cause[p].Load()
		if complete {
			end = r.applied[p].Load()
		}
		s.Records += end - int64(r.start.frontiers[p])
		s.Outputs += r.emitted[p].Load()
	}
	return s, err
}

func (r *serialRun) work(ctx context.Context, p ledger.Partition) error {
	m := r.amends.manifest
	return r.read(ctx, m.SourceTopic, m.Config.SourceIncarnation, p, r.start.frontiers[p], r.amends.ends[p], func(ctx context.Context, recs []ledger.SourceRecord) error {
		for _, rec := range recs {
			if err := r.pipeline.Apply(ctx, rec); err != nil {
				return err
			}
			r.applied[p].Store(int64(rec.Offset) + 1)
		}
		return nil
	})
}

func (r *serialRun) relay(ctx context.Context, p ledger.Partition, producer *broker.Producer) error {
	for sequence := ledger.Sequence(0); ; {
		found, err := r.pipeline.PublishNext(ctx, p, sequence, func(ctx context.Context, key, value []byte) (ledger.Offset, error) {
			offsets, err := producer.Produce(ctx, p, []broker.Message{{Key: key, Value: value}})
			if err != nil {
				return 0, err
			}
			return offsets[0], nil
		})
		if err != nil {
			return err
		}
		if found {
			sequence++
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func (r *serialRun) view(ctx context.Context, p ledger.Partition) error {
	return r.read(ctx, r.output.Name, r.output.Incarnation, p, 0, ledger.MaxCounter, func(ctx context.Context, recs []ledger.SourceRecord) error {
		for _, rec := range recs {
			if err := r.pipeline.Materialize(ctx, rec); err != nil {
				return err
			}
			env, err := wire.DecodeEnvelope(rec.Value)
			if err != nil {
				return err
			}
			r.emitted[p].Add(1)
			if env.Index == env.Count-1 {
				r.cause[p].Store(int64(env.Cause.Offset) + 1)
			}
		}
		return nil
	})
}

// watch ends the run when every record is decided and its outputs are in the view.
func (r *serialRun) watch(ctx context.Context) error {
	for {
		done := true
		for p := range r.applied {
			done = done && r.applied[p].Load() == int64(r.amends.ends[p]) && r.cause[p].Load() == r.last[p]
		}
		if done {
			return errEnough
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// compare checks that amends published, from the same records, exactly what the baseline did: output, version, presence,
// payload, cause and place in the repair. It returns how many outputs were compared.
func (r *serialRun) compare(ctx context.Context) (int64, error) {
	var compared int64
	for p := range ledger.Partition(r.output.Partitions) {
		ours, err := r.envelopes(ctx, r.amends.manifest.Output.Topic, r.amends.manifest.Output.Incarnation, p, r.start.outputs[p], r.emitted[p].Load())
		if err != nil {
			return compared, err
		}
		theirs, err := r.envelopes(ctx, r.output.Name, r.output.Incarnation, p, 0, r.emitted[p].Load())
		if err != nil {
			return compared, err
		}
		for i, e := range theirs {
			if i >= len(ours) {
				return compared, &DifferentError{Peer: "serial", Detail: fmt.Sprintf("partition %d: amends published %d outputs, serial more", p, len(ours))}
			}
			o := ours[i]
			o.Sequence, o.Status, e.Sequence, e.Status = 0, nil, 0, nil // serial counts from its own start, and no status is among them
			if o != e {
				return compared, &DifferentError{Peer: "serial", Detail: fmt.Sprintf("partition %d, output %d: amends %+v, serial %+v", p, i, o, e)}
			}
			compared++
		}
	}
	return compared, nil
}

// envelopes reads up to n envelopes of a partition from offset at.
func (r *serialRun) envelopes(ctx context.Context, topic, incarnation string, p ledger.Partition, at ledger.Frontier, n int64) ([]wire.Envelope, error) {
	var list []wire.Envelope
	ends, err := r.admin.Ends(ctx, topic)
	if err != nil {
		return nil, err
	}
	end := min(at+ledger.Frontier(n), ledger.Frontier(ends[p]))
	err = r.read(ctx, topic, incarnation, p, at, end, func(_ context.Context, recs []ledger.SourceRecord) error {
		for _, rec := range recs {
			if ledger.Frontier(rec.Offset) >= end {
				break
			}
			env, err := wire.DecodeEnvelope(rec.Value)
			if err != nil {
				return err
			}
			list = append(list, env)
		}
		return nil
	})
	return list, err
}
