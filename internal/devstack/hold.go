package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"amends/internal/embedded"
	"amends/internal/embedded/apache"
	"amends/internal/embedded/process"
)

// services are what the holder runs.
type services struct {
	kafka    *apache.Kafka
	postgres *embedded.Postgres
}

// hold runs the services until SIGTERM, or until one of them ends.
func hold(ctx context.Context, c Config, out io.Writer) error {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	lock, err := process.Acquire(c.Dir, "lock")
	if err != nil {
		return err
	}
	s, err := startServices(ctx, c, func(text string) { fmt.Fprintln(out, text) })
	if err == nil {
		err = process.WriteFile(filepath.Join(c.Dir, readyName), []byte(strconv.Itoa(os.Getpid())+"\n"))
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case <-s.kafka.Done():
			err = errors.New("run services: Apache Kafka ended by itself")
		case <-s.postgres.Done():
			err = errors.New("run services: PostgreSQL ended by itself")
		}
	}
	return errors.Join(err, s.stop(), lock.Release())
}

// startServices starts both side by side.
func startServices(ctx context.Context, c Config, progress func(string)) (*services, error) {
	s := &services{}
	started := make(chan error, 1)
	go func() {
		var err error
		s.kafka, err = apache.Start(ctx, apache.Options{Dir: filepath.Join(c.Dir, "kafka"), Port: c.BrokerPort, Progress: progress})
		started <- err
	}()
	var err error
	s.postgres, err = embedded.StartPostgres(ctx, embedded.PostgresOptions{Dir: filepath.Join(c.Dir, "postgresql"), Port: c.PostgresPort,
		Password: password, Progress: progress})
	err = errors.Join(err, <-started)
	if busy := (*process.PortError)(nil); errors.As(err, &busy) {
		busy.Flag = "" // these ports are fixed
	}
	return s, err
}

func (s *services) stop() error {
	var failures []error
	if s.kafka != nil {
		failures = append(failures, s.kafka.Stop())
	}
	if s.postgres != nil {
		failures = append(failures, s.postgres.Stop())
	}
	return errors.Join(failures...)
}
