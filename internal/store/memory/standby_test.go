package memory

import (
	"context"
	"errors"
	"testing"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
)

// A promotion that lost a tail goes back to all of what the standby had, once and again, and fences every older token.
func TestPromoteStandbyLosesWhatFollowed(t *testing.T) {
	ctx := context.Background()
	db := New()
	cfg, err := manifest.Default("lossy", "kafka:00112233445566778899aabbccddeeff")
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
	standby := db.Standby()
	for range 2 {
		o, err := n.Claim(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Commit(ctx, o.Token, &ledger.Batch{Expected: o.Frontier, Next: 7}); err != nil {
			t.Fatal(err)
		}
		l, err := n.AcquireService(ctx, store.Relay, 0, "holder", 1)
		if err != nil {
			t.Fatal(err)
		}
		db.PromoteStandby(standby)
		row, err := n.Observe(ctx, 0)
		if err != nil || row.Frontier != 0 || row.Token.Epoch != 0 || row.Token.Server == o.Token.Server {
			t.Fatalf("after the promotion %+v, %v", row, err)
		}
		if pos, err := n.RelayPosition(ctx, 0); err != nil || pos.Term != 0 || pos.Term == l.Term {
			t.Fatalf("after the promotion %+v, %v", pos, err)
		}
		if err := n.Commit(ctx, o.Token, &ledger.Batch{Next: 1}); !errors.Is(err, store.ErrServerChanged) {
			t.Fatalf("an older token: %v", err)
		}
	}
	db.PromoteStandby(New().Standby())
	if _, err := db.Namespace(ctx, cfg); !errors.Is(err, store.ErrNoNamespace) {
		t.Errorf("a namespace that the standby did not have: %v", err)
	}
}
