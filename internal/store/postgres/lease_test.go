package postgres_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

// S9: a standby that only looks neither waits for the row of a lease in force nor ends the backend that holds it, such as
// that of a slow renewal.
func TestS9StandbyThatLooksEndsNoRenewal(t *testing.T) {
	t.Parallel()
	var ended atomic.Int32
	n, url := openNamespace(t, func(o *postgres.Options) { o.Terminated = func(int32) { ended.Add(1) } })
	ctx := context.Background()
	if _, err := n.AcquireService(ctx, store.Relay, 0, "holder", time.Minute); err != nil {
		t.Fatal(err)
	}
	renewal := connect(t, url)
	execSQL(t, renewal, "BEGIN")
	execSQL(t, renewal, "UPDATE amends.leases SET expires_at = clock_timestamp() + interval '1 minute' WHERE role = 'relay' AND partition = 0")
	_, err := n.AcquireService(ctx, store.Relay, 0, "standby", time.Minute)
	if !errors.Is(err, store.ErrServiceBusy) {
		t.Errorf("got %v, want that it is held", err)
	}
	if ended.Load() != 0 { // a wait for the row, which stays locked, ends with this
		t.Error("it ended a backend")
	}
	execSQL(t, renewal, "COMMIT")
}

// S9: renewing does not wait for a connection behind workers, relays, views and readers.
func TestS9RenewalHasItsOwnConnection(t *testing.T) {
	t.Parallel()
	n, _ := openNamespace(t, func(o *postgres.Options) { o.MaxConns = 1 })
	ctx := context.Background()
	l, err := n.AcquireService(ctx, store.View, 1, "holder", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	err = n.Snapshot(ctx, func(store.Snapshot) error { // holds the pool's only connection
		renewal, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		lost, err := n.RenewServices(renewal, "holder", []store.Lease{l}, time.Minute)
		if len(lost) > 0 {
			t.Errorf("lost %+v", lost)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// S9: nor does the look at the server that follows each renewal (lease.Keeper): a loop that waited there would renew too late.
func TestS9LookAtTheServerWaitsForNoPool(t *testing.T) {
	t.Parallel()
	_, url := openNamespace(t)
	db := open(t, url, func(o *postgres.Options) { o.MaxConns = 1 })
	cfg, err := manifest.Default("claims", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	n, err := db.Namespace(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = n.Snapshot(t.Context(), func(store.Snapshot) error { // holds the pool's only connection
		look, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		server, err := db.Server(look)
		if err == nil && server == (store.Server{}) {
			t.Error("no identity")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
