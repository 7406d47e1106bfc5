package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/broker"
	"amends/internal/embedded"
	"amends/internal/workload"
)

// stand is what a run measures on: one server and one broker, each with its data on the disk and synced.
type stand struct {
	postgres *embedded.Postgres
	broker   *embedded.Broker
	admin    *broker.Admin
	options  broker.Options
	say      func(string)
}

// Run measures every workload and returns the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	dir, err := os.MkdirTemp(o.Dir, "amends-bench-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	s, err := newStand(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	r := &Report{Schema: 1, PostgreSQL: s.postgres.Binaries().Version, Broker: "embedded"}
	for _, part := range o.What {
		if err := s.part(ctx, part, r, o); err != nil {
			return nil, fmt.Errorf("measure %s: %w", part, err)
		}
	}
	return r, nil
}

// part measures one part of the report.
func (s *stand) part(ctx context.Context, part Part, r *Report, o Options) (err error) {
	switch part {
	case Path:
		for _, law := range o.Laws {
			result, err := s.measure(ctx, law, o)
			if err != nil {
				return fmt.Errorf("%s: %w", law, err)
			}
			r.Results = append(r.Results, *result)
		}
	case WorkerAlone:
		for _, law := range o.Laws {
			w, err := s.measureWorker(ctx, law, o)
			if err != nil {
				return fmt.Errorf("%s: %w", law, err)
			}
			r.Worker = append(r.Worker, *w)
		}
		r.Copy, err = s.measureCopy(ctx, workerTimes*o.Records)
	case Corrections:
		for _, days := range []int{min(365, o.Movements), o.Movements} {
			c, err := s.measureCorrection(ctx, o.Movements, days)
			if err != nil {
				return err
			}
			r.Corrections = append(r.Corrections, *c)
		}
	case Takeovers:
		r.Takeover, err = s.measureTakeover(ctx, o.Transactions)
	default:
		err = errors.New("no such part")
	}
	return err
}

func newStand(ctx context.Context, dir string, o Options) (*stand, error) {
	s := &stand{say: o.Say}
	var err error
	s.postgres, err = embedded.StartPostgres(ctx, embedded.PostgresOptions{Dir: filepath.Join(dir, "postgresql"), BinDir: o.BinDir, AnyPort: true,
		Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "8GB"}, Progress: o.Say})
	if err != nil {
		return nil, err
	}
	if s.broker, err = embedded.StartBroker(ctx, embedded.BrokerOptions{Dir: filepath.Join(dir, "broker"), Progress: o.Say}); err != nil {
		return nil, errors.Join(err, s.postgres.Stop())
	}
	s.options = broker.Options{Brokers: []string{s.broker.Address()}, ClientID: "amends-bench"}
	if s.admin, err = broker.Open(s.options); err != nil {
		return nil, errors.Join(err, s.broker.Stop(), s.postgres.Stop())
	}
	return s, nil
}

func (s *stand) stop() {
	s.admin.Close()
	if err := errors.Join(s.broker.Stop(), s.postgres.Stop()); err != nil {
		s.say("stop services: " + err.Error())
	}
}

// database makes an empty database and returns its URL.
func (s *stand) database(ctx context.Context, name string) (string, error) {
	conn, err := pgx.Connect(ctx, s.postgres.URL())
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	u, err := url.Parse(s.postgres.URL())
	if err != nil {
		return "", fmt.Errorf("parse database URL: %w", err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// warmUp is how many records of the stream go through amends before its clock starts, so that it has its key states in
// memory as after minutes of running. The peers have them in their stores too.
const warmUp = 4_000

// identifier writes a law as part of the name of a database.
func identifier(law workload.Law) string { return strings.ReplaceAll(law.String(), "-", "_") }

// measure prepares one workload in all three pipelines and runs them one after the other.
func (s *stand) measure(ctx context.Context, law workload.Law, o Options) (*Result, error) {
	name := identifier(law)
	stream := workload.NewStream(workload.StreamOptions{Seed: o.Seed, Keys: o.Keys, Law: law})
	a, err := s.newAmends(ctx, name, stream)
	if err != nil {
		return nil, err
	}
	defer a.close()
	began := time.Now()
	s.say(fmt.Sprintf("%s: writing a history of %d records", law, stream.History()))
	if err := a.prepare(ctx, stream); err != nil {
		return nil, fmt.Errorf("write history: %w", err)
	}
	start, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	s.say(fmt.Sprintf("%s: written in %.1f s; measuring amends", law, time.Since(began).Seconds()))
	r := &Result{Workload: law.String(), History: int64(stream.History()) + warmUp}
	measured := a.next(stream, o.Records)
	if r.Amends, err = a.run(ctx, measured); err != nil {
		return nil, fmt.Errorf("run amends: %w", err)
	}
	s.say(fmt.Sprintf("%s: measuring the trigger", law))
	if r.Trigger, err = s.runTrigger(ctx, name, a, start, o); err != nil {
		return nil, fmt.Errorf("run trigger: %w", err)
	}
	s.say(fmt.Sprintf("%s: measuring the serial baseline", law))
	if r.Serial, r.Compared, err = s.runSerial(ctx, name, a, start, o); err != nil {
		return nil, fmt.Errorf("run serial: %w", err)
	}
	return r, nil
}
