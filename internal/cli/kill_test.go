package cli_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"amends/internal/broker"
	"amends/internal/embedded"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/programtest"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/wire"
)

const (
	kills     = 10
	perSecond = 300 // records while the demo runs, as far as the machine lets
	burst     = 10  // records of one send
)

// streamer publishes movements of the demo's key and remembers which offsets were acknowledged.
type streamer struct {
	acknowledged map[ledger.Offset]string // transaction ids
	next         int
	mu           sync.Mutex
}

// stream sends bursts until ctx ends or a send fails, and returns for how long it sent.
func (s *streamer) stream(ctx context.Context, t *testing.T, brokers []string, m *manifest.Manifest) time.Duration {
	p, err := broker.NewProducer(broker.Options{Brokers: brokers, DeliveryTimeout: 2 * time.Second, RequestTimeout: 2 * time.Second}, m.SourceTopic, m.Config.SourceIncarnation)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer p.Close()
	began := time.Now()
	key := ledger.StockKey{Item: "widget", Location: "berlin"}
	for ctx.Err() == nil {
		messages, ids := make([]broker.Message, burst), make([]string, burst)
		for i := range messages {
			s.next++
			ids[i] = fmt.Sprintf("S-%d", s.next)
			a := ledger.Assertion{Key: key, TxnID: ids[i], Revision: 1, Payload: ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Quantity: 1,
				Day: m.Config.LedgerOrigin + ledger.Day(rand.IntN(20))}}
			messages[i] = broker.Message{Key: wire.AppendKey(nil, key), Value: wire.AppendAssertion(nil, a)}
		}
		offsets, err := p.Produce(context.WithoutCancel(ctx), 0, messages)
		s.mu.Lock()
		for i, o := range offsets {
			s.acknowledged[o] = ids[i]
		}
		s.mu.Unlock()
		if err != nil {
			break // killed under it
		}
		time.Sleep(time.Second * burst / perSecond)
	}
	return time.Since(began)
}

// A demo is killed ten times while records stream in; nothing that was acknowledged is lost, and each start ends in PASS.
func TestDemoKilledTenTimesLosesNothing(t *testing.T) {
	t.Parallel()
	dir := stackDir(t)
	s := newShell(t, map[string]string{"AMENDS_DIR": dir})
	st := &streamer{acknowledged: map[ledger.Offset]string{}}
	var streamed time.Duration
	for n := range kills + 1 {
		p, e := startDemo(t, s, dir)
		raw, err := os.ReadFile(e.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if a := s.Call(t.Context(), "amends verify -deep"); a.Code != 0 {
			t.Fatalf("after %d kills: %s\n%s", n, a.Stdout, a.Stderr)
		}
		compareJournal(t, e.DatabaseURL, m, st.acknowledged)
		if n == kills {
			p.Stop(stopsWithin)
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan time.Duration, 1)
		go func() { done <- st.stream(ctx, t, e.Brokers, m) }()
		time.Sleep(time.Duration(400+rand.IntN(600)) * time.Millisecond)
		p.Kill()
		killed := time.Now()
		cancel()
		streamed += <-done - time.Since(killed)
	}
	rate := float64(len(st.acknowledged)) / streamed.Seconds()
	t.Logf("%d records acknowledged, %.0f/s while the demo ran", len(st.acknowledged), rate)
	if len(st.acknowledged) < kills*burst {
		t.Error("fewer records than this test is for")
	}
}

// startDemo starts a demo and waits for its story's end.
func startDemo(t *testing.T, s *shell, dir string) (*programtest.Process, embedded.Endpoints) {
	t.Helper()
	p := s.Start("amends demo")
	for deadline := time.Now().Add(programtest.Deadline); !strings.Contains(p.Stdout.String(), "Running."); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the demo did not get there:\n%s\n%s", p.Stdout, p.Stderr)
		}
		if p.Ended() {
			t.Fatalf("the demo ended: %+v", p.Wait())
		}
	}
	e, running, err := embedded.Running(dir)
	if err != nil || !running {
		t.Fatalf("endpoints: %v %v", running, err)
	}
	return p, e
}

// compareJournal checks that every acknowledged source offset has its journal row.
func compareJournal(t *testing.T, url string, m *manifest.Manifest, acknowledged map[ledger.Offset]string) {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ns, err := db.Namespace(t.Context(), m.Config)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = ns.Snapshot(t.Context(), func(x store.Snapshot) error {
		return x.Journal(t.Context(), 0, func(d *ledger.Decision) error {
			if id, ok := acknowledged[d.Offset]; ok {
				found++
				if id != d.Assertion.TxnID {
					return fmt.Errorf("offset %d holds %s, acknowledged was %s", d.Offset, d.Assertion.TxnID, id)
				}
			}
			return nil
		})
	})
	if err != nil || found != len(acknowledged) {
		t.Fatalf("%d of %d acknowledged offsets are in the journal: %v", found, len(acknowledged), err)
	}
}
