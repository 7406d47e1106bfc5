package apache_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"amends/internal/absent"
	"amends/internal/embedded"
	"amends/internal/embedded/apache"
	"amends/internal/embedded/process"
)

// Another broker chooses the same port at the same moment and gets it: Kafka takes the next one, and does not mistake what answers
// for itself.
func TestKafkaWhosePortIsTakenAtTheLastMoment(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	// The port that it remembers is in use; before it takes the next one it says so.
	if err := os.WriteFile(filepath.Join(dir, "port"), []byte(strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)), 0o600); err != nil {
		t.Fatal(err)
	}
	var other *embedded.Broker
	port := 0
	said := func(line string) {
		want := 0
		if _, err := fmt.Sscanf(line, "port %d is in use: Kafka listens on %d", &want, &port); err != nil || other != nil {
			return
		}
		if other, err = embedded.StartBroker(ctx, embedded.BrokerOptions{Dir: t.TempDir(), Port: port}); err != nil {
			t.Error(err)
		}
	}
	k, err := apache.Start(ctx, apache.Options{Dir: dir, Progress: said})
	var missing *process.MissingError
	if errors.As(err, &missing) {
		absent.Skip(t, absent.KindBroker, missing.What, missing.How)
	}
	if other == nil {
		t.Fatalf("no port was taken: %v", err)
	}
	defer other.Stop()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Kill()
	select {
	case <-k.Done():
		t.Errorf("Kafka said that it is ready, on port %d, and ended", k.Port())
	case <-time.After(2 * time.Second): // it would have found the port taken by then, mostly
		if k.Port() == other.Port() {
			t.Errorf("both say that they are at port %d", k.Port())
		}
	}
}
