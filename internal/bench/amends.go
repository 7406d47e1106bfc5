package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/roles"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/workload"
)

// amends is the pipeline that is measured, with the source topic that all three read.
type amends struct {
	*stand
	db       *postgres.DB
	ns       *postgres.Namespace
	manifest *manifest.Manifest
	log      *workload.Log
	producer *broker.Producer
	present  []ledger.Assertion // of the history: every assertion, in order
	ends     []ledger.Frontier  // of the source
	stop     context.CancelFunc
	done     chan error
}

// state is what the peers begin with: where the source and the view stood when the clock of amends started.
type state struct {
	assertions []ledger.Assertion
	rows       []store.ViewRow
	frontiers  []ledger.Frontier
	outputs    []ledger.Frontier // of the output topic
}

func (s *stand) newAmends(ctx context.Context, name string, stream *workload.Stream) (*amends, error) {
	a := &amends{stand: s, done: make(chan error, 1), stop: func() {}}
	url, err := s.database(ctx, "amends_"+name)
	if err != nil {
		return nil, err
	}
	if a.db, err = postgres.Open(ctx, postgres.Options{URL: url}); err != nil {
		return nil, err
	}
	if err := a.provision(ctx, name, stream); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *amends) provision(ctx context.Context, name string, stream *workload.Stream) error {
	source, err := a.admin.CreateTopic(ctx, "bench-"+name+"-source", 2, 1)
	if err != nil {
		return fmt.Errorf("create source topic: %w", err)
	}
	output, err := a.admin.CreateTopic(ctx, "bench-"+name+"-output", 2, 1)
	if err != nil {
		return fmt.Errorf("create output topic: %w", err)
	}
	config, err := stream.Setting().Config("bench", source.Incarnation)
	if err != nil {
		return err
	}
	out := manifest.Output{Topic: output.Name, Incarnation: output.Incarnation, Partitions: output.Partitions}
	a.manifest = &manifest.Manifest{Config: config, SourceTopic: source.Name, Output: &out}
	a.log, a.ends = workload.NewLog(config), make([]ledger.Frontier, config.Partitions)
	if err := a.db.Migrate(ctx); err != nil {
		return err
	}
	if a.ns, err = a.db.Init(ctx, config, source.Name); err != nil {
		return err
	}
	if err := a.ns.Bind(ctx, out); err != nil {
		return err
	}
	a.producer, err = broker.NewProducer(a.options, source.Name, source.Incarnation)
	return err
}

func (a *amends) close() {
	a.stop()
	if a.producer != nil {
		a.producer.Close()
	}
	a.db.Close()
}

// next takes n assertions of the stream as source records, by partition.
func (a *amends) next(stream *workload.Stream, n int) [][]ledger.SourceRecord {
	parts := make([][]ledger.SourceRecord, a.manifest.Config.Partitions)
	for range n {
		assertion := stream.Next()
		rec := a.log.Record(assertion)
		a.present = append(a.present, assertion)
		parts[rec.Partition] = append(parts[rec.Partition], rec)
		a.ends[rec.Partition] = ledger.Frontier(rec.Offset) + 1
	}
	return parts
}

// publish appends records to the source topic, both partitions at once.
func (a *amends) publish(ctx context.Context, parts [][]ledger.SourceRecord) error {
	const page = 5_000
	g, ctx := errgroup.WithContext(ctx)
	for p, recs := range parts {
		g.Go(func() error {
			for len(recs) > 0 {
				n := min(page, len(recs))
				messages := make([]broker.Message, n)
				for i, r := range recs[:n] {
					messages[i] = broker.Message{Key: r.Key, Value: r.Value}
				}
				if _, err := a.producer.Produce(ctx, ledger.Partition(p), messages); err != nil {
					return fmt.Errorf("publish records: %w", err)
				}
				recs = recs[n:]
			}
			return nil
		})
	}
	return g.Wait()
}

// prepare writes the history into the topic and straight into the store, lets the outputs reach the view, and warms up.
func (a *amends) prepare(ctx context.Context, stream *workload.Stream) error {
	began := time.Now()
	history := a.next(stream, stream.History())
	if err := a.publish(ctx, history); err != nil {
		return err
	}
	g, inner := errgroup.WithContext(ctx)
	for p, recs := range history {
		g.Go(func() error {
			l, err := newLane(inner, a.ns, a.manifest.Config, ledger.Partition(p))
			if err != nil {
				return err
			}
			return l.commit(inner, recs)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	a.say(fmt.Sprintf("history committed after %.1f s", time.Since(began).Seconds()))
	running, stop := context.WithCancel(ctx)
	a.stop = func() {
		stop()
		<-a.done
		a.stop = func() {}
	}
	go func() {
		a.done <- roles.Run(running, roles.Options{Manifest: a.manifest, Namespace: a.ns, Topics: a.admin, Broker: a.options,
			Holder: "bench", Roles: roles.All()})
	}()
	if _, err := a.await(ctx); err != nil {
		return err
	}
	if err := a.publish(ctx, a.next(stream, warmUp)); err != nil {
		return err
	}
	_, err := a.await(ctx)
	return err
}

// await waits until everything published is decided and in the view; it returns how many outputs there are in all.
func (a *amends) await(ctx context.Context) (int64, error) {
	for {
		done, outputs, err := a.drained(ctx)
		if err != nil || done {
			return outputs, err
		}
		select {
		case err := <-a.done:
			a.done <- err
			return 0, errors.Join(errors.New("the roles ended"), err)
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// drained reports whether every partition is decided up to its end and the view holds every sequence, and how many
// outputs the view has applied.
func (a *amends) drained(ctx context.Context) (done bool, outputs int64, err error) {
	err = a.ns.Snapshot(ctx, func(s store.Snapshot) error {
		states, err := s.Partitions(ctx)
		if err != nil {
			return err
		}
		done = true
		for p, st := range states {
			done = done && st.Owned.Frontier == a.ends[p] && st.View.Sequence == st.Owned.Sequence
			outputs += int64(st.View.Sequence)
		}
		return nil
	})
	return done, outputs, err
}

// run publishes the measured records and takes the time until the view holds the last repair.
func (a *amends) run(ctx context.Context, parts [][]ledger.SourceRecord) (Speed, error) {
	_, before, err := a.drained(ctx)
	if err != nil {
		return Speed{}, err
	}
	var records int64
	for _, p := range parts {
		records += int64(len(p))
	}
	began, spent := time.Now(), a.processorTime()
	if err := a.publish(ctx, parts); err != nil {
		return Speed{}, err
	}
	after, err := a.await(ctx)
	speed := Speed{Records: records, Outputs: after - before, Elapsed: time.Since(began), Processor: a.processorTime() - spent}
	a.stop()
	return speed, err
}

// state reads what the peers begin with.
func (a *amends) state(ctx context.Context) (*state, error) {
	st := &state{assertions: a.present, frontiers: append([]ledger.Frontier(nil), a.ends...)}
	err := a.ns.Snapshot(ctx, func(s store.Snapshot) error {
		states, err := s.Partitions(ctx)
		if err != nil {
			return err
		}
		for _, p := range states {
			st.outputs = append(st.outputs, p.View.Output)
			if err := s.ViewRows(ctx, p.Partition, func(r store.ViewRow) error { st.rows = append(st.rows, r); return nil }); err != nil {
				return fmt.Errorf("read view of partition %s: %w", strconv.Itoa(int(p.Partition)), err)
			}
		}
		return nil
	})
	return st, err
}
