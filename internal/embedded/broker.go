package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"amends/internal/embedded/process"

	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	brokerFlag = "-broker-port"
	brokerPort = 19092   // the first port tried for a new broker
	cleanName  = "clean" // there after an orderly stop: no transaction can be cut off
	logsName   = "logs"
)

// BrokerOptions say how to run the embedded broker. The zero value of all but Dir will do.
type BrokerOptions struct {
	Dir      string       // holds the logs and the port; made when absent
	Progress func(string) // told what differs from what was expected; may be nil
	Port     int          // 1..65535: this one or *PortError; 0: the one of last time, else the next free from 19092
}

// Broker is an in-process Kafka-compatible broker that syncs each batch to the disk before it acknowledges it.
type Broker struct {
	cluster *kfake.Cluster
	lock    *process.Lock
	dir     string
	port    int
}

// StartBroker opens the broker's data and listens on loopback. Topics are made by request only. A transaction that the
// death of an earlier process cut off is aborted first. Errors: *HeldError, *PortError, *SpaceError.
func StartBroker(ctx context.Context, o BrokerOptions) (*Broker, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("resolve directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	hold, err := process.Acquire(dir, "lock")
	if err != nil {
		return nil, err
	}
	b := &Broker{dir: dir, lock: hold}
	if err := b.start(ctx, &o); err != nil {
		return nil, errors.Join(err, hold.Release())
	}
	return b, nil
}

func (b *Broker) start(ctx context.Context, o *BrokerOptions) error {
	if err := process.CheckSpace(b.dir, process.MinSpaceBytes); err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	file := filepath.Join(b.dir, portName)
	want, fixed := process.RememberedPort(file, brokerPort), false
	if o.Port != 0 {
		want, fixed = o.Port, true
	}
	for next := want; ; next = b.port + 1 {
		port, err := process.ChoosePort(next, fixed, brokerFlag)
		if err != nil {
			return err
		}
		b.port = port
		b.cluster, err = openLogs(filepath.Join(b.dir, logsName), port)
		if err == nil {
			break
		}
		if fixed || !errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("open broker: %w", err)
		}
	}
	if b.port != want {
		process.Tell(o.Progress, fmt.Sprintf("port %d is in use: the broker listens on %d", want, b.port))
	}
	if err := process.WriteFile(file, []byte(strconv.Itoa(b.port)+"\n")); err != nil {
		b.cluster.Close()
		return err
	}
	return nil
}

// prepare repairs the logs unless the last stop was orderly, and forgets that it was.
func (b *Broker) prepare(ctx context.Context) error {
	logs, clean := filepath.Join(b.dir, logsName), filepath.Join(b.dir, cleanName)
	_, err := os.Stat(clean)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for orderly stop: %w", err)
	}
	if err == nil {
		if err := os.Remove(clean); err != nil {
			return fmt.Errorf("forget orderly stop: %w", err)
		}
		return process.SyncDir(b.dir)
	}
	if _, err := os.Stat(logs); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return abortOpenTransactions(ctx, logs)
}

// openLogs opens the data; port 0 lets the kernel choose.
func openLogs(dir string, port int) (*kfake.Cluster, error) {
	return kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.ClusterID("amends-embedded"),
		kfake.DefaultNumPartitions(1), kfake.DataDir(dir), kfake.SyncWrites())
}

// Address is host and port.
func (b *Broker) Address() string { return process.Address(b.port) }

// Port is the TCP port on 127.0.0.1.
func (b *Broker) Port() int { return b.port }

// Stop closes the broker, notes that it ended in order, and gives the directory up.
func (b *Broker) Stop() error {
	b.cluster.Close()
	err := process.WriteFile(filepath.Join(b.dir, cleanName), []byte("stopped in order\n"))
	return errors.Join(err, b.lock.Release())
}
