package apache

import (
	"context"
	"crypto/rand"
	_ "embed" // the configuration beside this file
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"amends/internal/embedded/process"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Version is the Apache Kafka that Start runs.
const Version = "4.4.0"

const (
	readyTimeout = 90 * time.Second // on a busy machine; 2 to 5 s otherwise
	stopTimeout  = 30 * time.Second
	logName      = "kafka.log"
	logsName     = "logs"
	portName     = "port"
	firstPort    = 19092 // tried first for a new broker
)

//go:embed server.properties
var properties string

//go:embed log4j2.xml
var logging []byte

// Options say how to run Apache Kafka. The zero value of all but Dir will do.
type Options struct {
	Dir      string       // holds the logs, ports and configuration; made when absent
	CacheDir string       // where Kafka's programs are kept; default: amends under the user's cache directory
	Progress func(string) // told what takes long or differs from what was expected; may be nil
	Port     int          // 1..65535: this one or *PortError; 0: the one of last time, else the next free from 19092
	AnyPort  bool         // a port of the kernel's choice, for tests
	// Listeners are more ways to reach it, each on a port of the kernel's choice at every start.
	Listeners []Listener
}

// Listener is one way to reach the broker.
type Listener struct {
	Settings map[string]string // of it alone: listener.name.NAME. is put before each name
	Name     string            // capitals, digits and dashes
	Protocol string            // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
}

// Kafka is a running Apache Kafka of one node that ends with this process.
type Kafka struct {
	child            *process.Child
	lock             *process.Lock
	dir              string
	listeners        []Listener
	ports            []int  // of the listeners
	mark             string // of this start, which its metadata has as the broker's rack
	port, controller int
}

// Start starts Apache Kafka on o.Dir, fetching it through Maven the first time. Errors: *process.MissingError without Java or
// Maven, *HeldError, *PortError; others carry the end of its log.
func Start(ctx context.Context, o Options) (*Kafka, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("resolve directory: %w", err)
	}
	programs, err := findPrograms(ctx, o.CacheDir, o.Progress)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	hold, err := process.Acquire(dir, "lock")
	if err != nil {
		return nil, err
	}
	k := &Kafka{dir: dir, lock: hold, listeners: o.Listeners}
	if err := k.start(ctx, programs, &o); err != nil {
		if k.child != nil {
			err = errors.Join(err, k.child.Kill())
		}
		return nil, errors.Join(err, hold.Release())
	}
	return k, nil
}

func (k *Kafka) start(ctx context.Context, programs *install, o *Options) error {
	if err := process.CheckSpace(k.dir, process.MinSpaceBytes); err != nil {
		return err
	}
	if err := programs.ensureFormatted(k.logs()); err != nil {
		return err
	}
	for try := 0; ; try++ {
		if err := k.choosePorts(o); err != nil {
			return err
		}
		from, err := k.spawn(programs)
		if err != nil {
			return err
		}
		err = k.awaitReady(ctx)
		if err == nil {
			return nil
		}
		said := process.LogSince(filepath.Join(k.dir, logName), from)
		lost := strings.Contains(said, "Address already in use") && o.Port == 0 && try < 5
		if k.child.Alive() || !lost || ctx.Err() != nil {
			return fmt.Errorf("start Apache Kafka in %s: %w\n%s", k.dir, err, process.LastLines(said, 8))
		}
		k.port, k.controller = 0, 0
	}
}

func (k *Kafka) logs() string { return filepath.Join(k.dir, logsName) }

func (k *Kafka) choosePorts(o *Options) (err error) {
	file := filepath.Join(k.dir, portName)
	switch {
	case o.Port != 0:
		k.port, err = process.ChoosePort(o.Port, true, "-broker-port")
	case o.AnyPort:
		k.port, err = process.KernelPort()
	default:
		want := process.RememberedPort(file, firstPort)
		k.port, err = process.ChoosePort(want, false, "-broker-port")
		if err == nil && k.port != want {
			process.Tell(o.Progress, fmt.Sprintf("port %d is in use: Kafka listens on %d", want, k.port))
		}
	}
	if err == nil {
		k.controller, err = process.KernelPort()
	}
	k.ports = make([]int, len(k.listeners))
	for i := range k.ports {
		if err == nil {
			k.ports[i], err = process.KernelPort()
		}
	}
	if err != nil {
		return err
	}
	if err := process.WriteFile(file, []byte(strconv.Itoa(k.port)+"\n")); err != nil {
		return err
	}
	return k.writeConfiguration()
}

func (k *Kafka) writeConfiguration() error {
	listeners := "listeners=PLAINTEXT://" + process.Address(k.port) + ",CONTROLLER://" + process.Address(k.controller)
	protocols, settings := "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", ""
	for i, l := range k.listeners {
		listeners += "," + l.Name + "://" + process.Address(k.ports[i])
		protocols += "," + l.Name + ":" + l.Protocol
		for _, name := range slices.Sorted(maps.Keys(l.Settings)) {
			settings += "listener.name." + strings.ToLower(l.Name) + "." + name + "=" + l.Settings[name] + "\n"
		}
	}
	k.mark = "start-" + rand.Text()
	text := properties + "broker.rack=" + k.mark + "\ncontroller.quorum.voters=1@" + process.Address(k.controller) + "\n" + listeners + "\n" + protocols + "\n" + settings +
		"log.dirs=" + k.logs() + "\n"
	if err := process.WriteFile(filepath.Join(k.dir, "server.properties"), []byte(text)); err != nil {
		return err
	}
	return process.WriteFile(filepath.Join(k.dir, "log4j2.xml"), logging)
}

func (k *Kafka) spawn(programs *install) (int64, error) {
	log, from, err := process.OpenLog(filepath.Join(k.dir, logName))
	if err != nil {
		return 0, err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(programs.java, programs.arguments(filepath.Join(k.dir, "log4j2.xml"), programs.archiveUse(),
		"kafka.Kafka", filepath.Join(k.dir, "server.properties"))...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = k.dir, log, log
	k.child, err = process.Start(cmd, syscall.SIGKILL) // what it acknowledged is with the kernel by then
	return from, err
}

// awaitReady waits until the broker answers and is registered with its controller. Another broker may have taken the port at the
// same moment and answer instead: then this one ends.
func (k *Kafka) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Address()), kgo.RetryTimeout(time.Second), kgo.DialTimeout(time.Second))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for {
		seen, err := admin.BrokerMetadata(ctx)
		if err == nil && len(seen.Brokers) == 1 && seen.Controller >= 0 && seen.Brokers[0].Rack != nil && *seen.Brokers[0].Rack == k.mark {
			return nil
		}
		select {
		case <-k.child.Done():
			return fmt.Errorf("the broker ended: %w", k.child.Err())
		case <-ctx.Done():
			return fmt.Errorf("wait for the broker: %w", errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Address is host and port.
func (k *Kafka) Address() string { return process.Address(k.port) }

// Listener is host and port of a listener of Options, "" if there is none of that name.
func (k *Kafka) Listener(name string) string {
	for i, l := range k.listeners {
		if l.Name == name {
			return process.Address(k.ports[i])
		}
	}
	return ""
}

// Port is the TCP port on 127.0.0.1.
func (k *Kafka) Port() int { return k.port }

// PID is the broker's process.
func (k *Kafka) PID() int { return k.child.PID() }

// Done is closed when the broker has ended, for whatever reason.
func (k *Kafka) Done() <-chan struct{} { return k.child.Done() }

// Stop ends the broker in order and gives the directory up.
func (k *Kafka) Stop() error {
	return errors.Join(k.child.Stop(syscall.SIGTERM, stopTimeout), k.lock.Release())
}

// Kill ends the broker by SIGKILL, for drills, and gives the directory up.
func (k *Kafka) Kill() error { return errors.Join(k.child.Kill(), k.lock.Release()) }
