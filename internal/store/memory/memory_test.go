package memory

import (
	"context"
	"testing"
	"time"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/storetest"
	"amends/internal/store/storetest/surface"
)

// suite adapts DB to the suite.
type suite struct{ *DB }

func (s suite) Init(ctx context.Context, cfg *manifest.Config, topic string) (storetest.Namespace, error) {
	n, err := s.DB.Init(ctx, cfg, topic)
	return n, err
}

func (s suite) Namespace(ctx context.Context, cfg *manifest.Config) (storetest.Namespace, error) {
	n, err := s.DB.Namespace(ctx, cfg)
	return n, err
}

func (s suite) GuardSource(ctx context.Context, incarnation string) (storetest.Guard, error) {
	g, err := s.DB.GuardSource(ctx, incarnation)
	return g, err
}

func (s suite) Forge(t testing.TB, namespace string, what surface.Forgery, value int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.namespaces[namespace].partitions[0]
	switch what {
	case surface.Epoch:
		p.owned.Token.Epoch = ledger.Epoch(value)
	case surface.RelayTerm:
		p.relay.Term = value
	case surface.ViewTerm:
		p.view.Term = value
	case surface.NextSequence:
		p.owned.Sequence = ledger.Sequence(value)
	case surface.Totals:
		p.measurements.Commits = value
		p.measurements.Total = store.Sample{Lock: value, PreCommit: value, Work: ledger.Work{Records: value, Accepted: value,
			Rejected: value, RewindDays: value, RefoldedDays: value, Changed: value, Withdrawn: value}}
	case surface.AReceipt:
		p.receipts = append(p.receipts, store.Receipt{Next: 1})
	case surface.AViewRow:
		p.rows[ledger.OutputID{Kind: ledger.Balance, Day: 1}] = store.ViewRow{}
	case surface.AViewError:
		p.violations = append(p.violations, store.Violation{Reason: "x"})
	case surface.RelayMoved:
		p.relay = &store.RelayPosition{Sequence: 1}
	case surface.ViewMoved:
		p.view = &store.ViewPosition{Sequence: 1}
	default:
		t.Fatalf("unknown forgery %q", what)
	}
}

func TestSuite(t *testing.T) {
	storetest.Run(t, func(testing.TB) storetest.DB { return suite{New()} })
}

func TestSuiteHasAtLeastSixtyCases(t *testing.T) {
	if n := storetest.Count(); n < 60 {
		t.Fatalf("%d cases", n)
	}
}

func TestPromotionFencesOlderTokens(t *testing.T) {
	ctx := context.Background()
	db := New()
	cfg, err := manifest.Default("promoted", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	n, err := db.Init(ctx, cfg, "source")
	if err != nil {
		t.Fatal(err)
	}
	o, err := n.Claim(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	db.Promote()
	if err := n.Commit(ctx, o.Token, &ledger.Batch{Next: 1}); err == nil {
		t.Fatal("a commit under the token of the old timeline succeeded")
	}
}

func TestLeasesExpireByTheGivenClock(t *testing.T) {
	ctx := context.Background()
	now := time.Unix(0, 0)
	db := NewWithClock(func() time.Time { return now })
	cfg, err := manifest.Default("clock", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	n, err := db.Init(ctx, cfg, "source")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Bind(ctx, manifest.Output{Topic: "o", Incarnation: "kafka:ff112233445566778899aabbccddeeff", Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.AcquireService(ctx, store.Relay, 0, "a", time.Hour); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour - 1)
	if _, err := n.AcquireService(ctx, store.Relay, 0, "b", time.Hour); err == nil {
		t.Fatal("taken before it expired")
	}
	now = now.Add(1)
	if _, err := n.AcquireService(ctx, store.Relay, 0, "b", time.Hour); err != nil {
		t.Fatal(err)
	}
}
