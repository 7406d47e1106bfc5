package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store/postgres"
	"amends/internal/worker"
	"amends/internal/workload"
)

// workerTimes is how many times the records of the whole path a worker alone is measured over: it is that much faster.
const workerTimes = 5

// Worker is the worker without a broker: decode, decide and commit, one lane a partition, states in memory. WAL is in bytes.
type Worker struct {
	Workload string `json:"workload"`
	Speed
	WAL int64 `json:"wal_bytes"`
}

// yard is a namespace of its own in a database of its own, with the log of its source topic.
type yard struct {
	db    *postgres.DB
	ns    *postgres.Namespace
	cfg   *manifest.Config
	log   *workload.Log
	lanes []*lane
}

// newYard makes the namespace and claims every partition.
func (s *stand) newYard(ctx context.Context, name string, set workload.Setting) (*yard, error) {
	url, err := s.database(ctx, name)
	if err != nil {
		return nil, err
	}
	y := &yard{}
	if y.cfg, err = set.Config("bench", "kafka:00000000000000000000000000000001"); err != nil {
		return nil, err
	}
	y.log = workload.NewLog(y.cfg)
	if y.db, err = postgres.Open(ctx, postgres.Options{URL: url}); err != nil {
		return nil, err
	}
	if err := y.claim(ctx); err != nil {
		y.db.Close()
		return nil, err
	}
	return y, nil
}

func (y *yard) claim(ctx context.Context) (err error) {
	if err := y.db.Migrate(ctx); err != nil {
		return err
	}
	if y.ns, err = y.db.Init(ctx, y.cfg, "bench"); err != nil {
		return err
	}
	return y.takeOver(ctx)
}

// takeOver claims every partition again, with nothing in memory.
func (y *yard) takeOver(ctx context.Context) error {
	y.lanes = y.lanes[:0]
	for p := range ledger.Partition(y.cfg.Partitions) {
		l, err := newLane(ctx, y.ns, y.cfg, p)
		if err != nil {
			return err
		}
		y.lanes = append(y.lanes, l)
	}
	return nil
}

// commit decides and commits the next n assertions, all partitions side by side, and returns how long that took, the
// making of the records left out.
func (y *yard) commit(ctx context.Context, n int, next func() ledger.Assertion) (time.Duration, error) {
	parts := make([][]ledger.SourceRecord, len(y.lanes))
	for range n {
		rec := y.log.Record(next())
		parts[rec.Partition] = append(parts[rec.Partition], rec)
	}
	began := time.Now()
	g, inner := errgroup.WithContext(ctx)
	for i, l := range y.lanes {
		g.Go(func() error { return l.commit(inner, parts[i]) })
	}
	err := g.Wait()
	return time.Since(began), err
}

func (y *yard) outputs() (n int64) {
	for _, l := range y.lanes {
		n += l.outputs
	}
	return n
}

// measureWorker runs a workload's history, and then its stream by the clock.
func (s *stand) measureWorker(ctx context.Context, law workload.Law, o Options) (*Worker, error) {
	stream := workload.NewStream(workload.StreamOptions{Seed: o.Seed, Keys: o.Keys, Law: law})
	s.say(fmt.Sprintf("worker, %s: writing a history of %d records", law, stream.History()))
	y, err := s.newYard(ctx, "worker_"+identifier(law), stream.Setting())
	if err != nil {
		return nil, err
	}
	defer y.db.Close()
	if _, err := y.commit(ctx, stream.History(), stream.Next); err != nil {
		return nil, fmt.Errorf("write history: %w", err)
	}
	outputs := y.outputs()
	wal, err := s.wal(ctx)
	if err != nil {
		return nil, err
	}
	w := &Worker{Workload: law.String()}
	w.Records = int64(workerTimes * o.Records)
	if w.Elapsed, err = y.commit(ctx, workerTimes*o.Records, stream.Next); err != nil {
		return nil, fmt.Errorf("run worker: %w", err)
	}
	w.Outputs = y.outputs() - outputs
	after, err := s.wal(ctx)
	w.WAL = after - wal
	return w, err
}

// wal returns how many bytes the server has written ahead in all.
func (s *stand) wal(ctx context.Context) (n int64, err error) {
	conn, err := pgx.Connect(ctx, s.postgres.URL())
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := conn.QueryRow(ctx, `SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint`).Scan(&n); err != nil {
		return 0, fmt.Errorf("read position: %w", err)
	}
	return n, nil
}

// measureCopy is what the server does at best: COPY of a narrow table with a primary key, in transactions of a worker's
// size, by as many connections as there are lanes.
func (s *stand) measureCopy(ctx context.Context, rows int) (Speed, error) {
	const lanes = 2
	url, err := s.database(ctx, "narrow")
	if err != nil {
		return Speed{}, err
	}
	conns := make([]*pgx.Conn, lanes)
	for i := range conns {
		if conns[i], err = pgx.Connect(ctx, url); err != nil {
			return Speed{}, fmt.Errorf("connect: %w", err)
		}
		defer conns[i].Close(context.WithoutCancel(ctx))
	}
	if _, err := conns[0].Exec(ctx, "CREATE TABLE narrow (lane bigint, n bigint, PRIMARY KEY (lane, n))"); err != nil {
		return Speed{}, fmt.Errorf("create table: %w", err)
	}
	began := time.Now()
	g, inner := errgroup.WithContext(ctx)
	for i, conn := range conns {
		g.Go(func() error {
			for n := 0; n < rows/lanes; n += worker.BatchRecords {
				source := pgx.CopyFromSlice(min(worker.BatchRecords, rows/lanes-n), func(j int) ([]any, error) { return []any{int64(i), int64(n + j)}, nil })
				if _, err := conn.CopyFrom(inner, pgx.Identifier{"narrow"}, []string{"lane", "n"}, source); err != nil {
					return fmt.Errorf("copy: %w", err)
				}
			}
			return nil
		})
	}
	err = g.Wait()
	return Speed{Records: int64(rows), Elapsed: time.Since(began)}, err
}
