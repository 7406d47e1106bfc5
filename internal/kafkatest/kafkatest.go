package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"amends/internal/absent"
	"amends/internal/embedded/apache"
	"amends/internal/embedded/process"
	"amends/internal/pause"
	"amends/internal/scratch"

	"github.com/twmb/franz-go/pkg/kgo"
)

// brokersEnv names existing brokers for the tests, comma separated.
const brokersEnv = "AMENDS_TEST_BROKERS"

// startTimeout bounds a start, with the first one's download.
const startTimeout = 8 * time.Minute

// A port that another process has is asked for again every portWait, for portPatience in all.
const (
	portPatience = time.Minute
	portWait     = 100 * time.Millisecond
)

// The test binary's broker. A lazily started process is the one state that must outlive a test.
var (
	own   = sync.OnceValues(func() (*apache.Kafka, error) { return start(0, "") })
	named = sync.OnceValues(reach)
)

// Brokers returns the addresses of a Kafka for this test binary: those in AMENDS_TEST_BROKERS, else of an Apache Kafka
// that is started for it. Make topics through Topic or NewTopic: other tests use the same brokers.
func Brokers(t testing.TB) []string {
	t.Helper()
	if os.Getenv(brokersEnv) != "" {
		brokers, err := named()
		if err != nil {
			t.Fatalf("reach the brokers of the tests (%s): %v", brokersEnv, err)
		}
		return brokers
	}
	k, err := own()
	if err != nil {
		refuse(t, err)
	}
	return []string{k.Address()}
}

// refuse ends the test: an absence is counted as one, everything else is a failure.
func refuse(t testing.TB, err error) {
	t.Helper()
	var missing *process.MissingError
	if errors.As(err, &missing) {
		absent.Skip(t, absent.KindBroker, missing.What, missing.How+", or set "+brokersEnv)
	}
	t.Fatalf("start Apache Kafka for the tests: %v", err)
}

func reach() ([]string, error) {
	brokers := strings.Split(os.Getenv(brokersEnv), ",")
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RetryTimeout(10*time.Second))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(brokers, ","), err)
	}
	return brokers, nil
}

// start starts a Kafka of this process; an empty dir is a new one that lasts as long as the process.
func start(port int, dir string, listeners ...apache.Listener) (*apache.Kafka, error) {
	if dir == "" {
		var err error
		if dir, err = scratch.Dir("amends-kafkatest-"); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return apache.Start(ctx, apache.Options{Dir: dir, Port: port, AnyPort: port == 0, Listeners: listeners})
}

// Instance is an Apache Kafka of one test's own.
type Instance struct {
	t    testing.TB
	k    *apache.Kafka
	dir  string
	live bool
}

// Server starts an Apache Kafka for this test alone, also where AMENDS_TEST_BROKERS names others: drills stop and kill
// it. It keeps its port and data over its starts and ends with the test.
func Server(t testing.TB) *Instance {
	t.Helper()
	dir, err := scratch.Dir("amends-kafkatest-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Instance{t: t, dir: dir}
	if s.k, err = start(0, dir); err != nil {
		refuse(t, err)
	}
	s.live = true
	t.Cleanup(func() {
		s.Kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Logf("remove broker: %v", err)
		}
	})
	return s
}

// Brokers is the broker's address.
func (s *Instance) Brokers() []string { return []string{s.k.Address()} }

// PID is the broker's process, for signals such as SIGSTOP.
func (s *Instance) PID() int { return s.k.PID() }

// Stop ends the broker in order. A stopped one stays stopped.
func (s *Instance) Stop() { s.end((*apache.Kafka).Stop) }

// Kill ends the broker by SIGKILL. A transaction whose commit was acknowledged a moment before can stay open over the
// next start (seen with 4.4: complete in the coordinator's log, no marker in the partition's): wait until the last
// stable offset has passed it.
func (s *Instance) Kill() { s.end((*apache.Kafka).Kill) }

func (s *Instance) end(how func(*apache.Kafka) error) {
	s.t.Helper()
	if !s.live {
		return
	}
	s.live = false
	if err := how(s.k); err != nil {
		s.t.Errorf("end broker: %v", err)
	}
}

// Start starts the broker again, on the same port and data.
func (s *Instance) Start() {
	s.t.Helper()
	if s.live {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), portPatience)
	defer cancel()
	var taken *process.PortError
	if err := pause.While(ctx, portWait, portWait, func(err error) bool { return errors.As(err, &taken) }, func() error {
		k, err := start(s.k.Port(), s.dir)
		if err == nil {
			s.k, s.live = k, true
		}
		return err
	}); err != nil {
		s.t.Fatalf("start broker again: %v", err)
	}
}
