package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const config = `{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":3,"quantity_scale":0,"stock_keys":[],"open_keys":{"opening_balance":0,"threshold":null}}`

func namespace(t *testing.T) (*memory.DB, *memory.Namespace) {
	t.Helper()
	cfg, err := manifest.ParseConfig([]byte(config), "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	db := memory.New()
	ns, err := db.Init(t.Context(), cfg, "source")
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Bind(t.Context(), manifest.Output{Topic: "output", Incarnation: "kafka:ffeeddccbbaa99887766554433221100", Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	return db, ns
}

// fast has a lease of 200 ms, renewed every 40 ms.
func fast(o lease.Options) lease.Options {
	o.TTL, o.Renew, o.Retry = 200*time.Millisecond, 40*time.Millisecond, 20*time.Millisecond
	return o
}

// faulty counts and fails what a Keeper asks of the store.
type faulty struct {
	lease.Store
	mu      sync.Mutex
	renewal func() error
	acquire func(n int) error
	renewed int
	tried   int
	most    int // leases in one renewal
}

func (f *faulty) RenewServices(ctx context.Context, holder string, leases []store.Lease, ttl time.Duration) ([]store.Lease, error) {
	f.mu.Lock()
	f.renewed++
	f.most = max(f.most, len(leases))
	fail := f.renewal
	f.mu.Unlock()
	if fail != nil {
		if err := fail(); err != nil {
			return nil, err
		}
	}
	return f.Store.RenewServices(ctx, holder, leases, ttl)
}

func (f *faulty) AcquireService(ctx context.Context, role store.Role, p ledger.Partition, holder string, ttl time.Duration) (store.Lease, error) {
	f.mu.Lock()
	f.tried++
	n, fail := f.tried, f.acquire
	f.mu.Unlock()
	if fail != nil {
		if err := fail(n); err != nil {
			return store.Lease{}, err
		}
	}
	return f.Store.AcquireService(ctx, role, p, holder, ttl)
}

// TestSC38RenewedLeaseIsKept: the work of three partitions and two roles outlives the time to live under one renewal
// loop, and nobody else gets in.
func TestSC38RenewedLeaseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ns := namespace(t)
		f := &faulty{Store: ns}
		k := lease.New(f, "a", fast(lease.Options{}))
		var wg sync.WaitGroup
		for _, role := range []store.Role{store.Relay, store.View} {
			for p := range ledger.Partition(3) {
				wg.Go(func() {
					err := k.Hold(t.Context(), role, p, func(ctx context.Context, l store.Lease) error {
						time.Sleep(600 * time.Millisecond)
						if _, err := ns.AcquireService(ctx, role, p, "b", time.Second); !errors.Is(err, store.ErrServiceBusy) {
							t.Errorf("another holder: %v", err)
						}
						return ctx.Err()
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if f.most != 6 || f.renewed > 20 {
			t.Errorf("%d renewals of at most %d leases: one statement should renew all six", f.renewed, f.most)
		}
		if l, err := ns.AcquireService(t.Context(), store.Relay, 0, "b", time.Second); err != nil || l.Term != 2 {
			t.Errorf("after the release: %+v %v", l, err)
		}
	})
}

// TestSC38StandbyTakesOverFromTheDead: a holder that renews no more is followed within its time to live and a wait of the
// standby's; its own work ends as fenced once it asks again.
func TestSC38StandbyTakesOverFromTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ns := namespace(t)
		speaks := make(chan struct{}, 1) // holds a token while the dead one may speak
		speaks <- struct{}{}
		f := &faulty{Store: ns, renewal: func() error { speaks <- <-speaks; return nil }}
		o := fast(lease.Options{})
		dead, standby := lease.New(f, "a", o), lease.New(ns, "b", o)
		started, first := make(chan store.Lease, 2), make(chan error, 1)
		go func() {
			first <- dead.Hold(t.Context(), store.View, 0, func(ctx context.Context, l store.Lease) error {
				started <- l
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		old := <-started
		<-speaks
		began := time.Now()
		err := standby.Hold(t.Context(), store.View, 0, func(_ context.Context, l store.Lease) error {
			if took := time.Since(began); took > o.TTL+o.Retry || l.Term != old.Term+1 || l.Nonce == old.Nonce {
				t.Errorf("taken after %s: %+v", took, l)
			}
			speaks <- struct{}{}
			if err := <-first; !errors.Is(err, store.ErrFence) {
				t.Errorf("the former holder ended with %v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestSC38NoStandbyIsBusy(t *testing.T) {
	_, ns := namespace(t)
	if _, err := ns.AcquireService(t.Context(), store.Relay, 0, "b", time.Minute); err != nil {
		t.Fatal(err)
	}
	err := lease.New(ns, "a", fast(lease.Options{NoStandby: true})).Hold(t.Context(), store.Relay, 0, func(context.Context, store.Lease) error {
		t.Error("work ran without a lease")
		return nil
	})
	if !errors.Is(err, store.ErrServiceBusy) {
		t.Fatal(err)
	}
}

func TestAcquireWaitsOrGivesUp(t *testing.T) {
	boom := errors.New("deadlock detected")
	for name, tc := range map[string]struct {
		acquire func(n int) error
		want    error
		tried   int
	}{
		"away, then back": {func(n int) error {
			if n < 6 {
				return fmt.Errorf("connect: %w", store.ErrUnavailable)
			}
			return nil
		}, nil, 6},
		"reply lost": {func(n int) error {
			if n == 1 {
				return fmt.Errorf("commit: %w", store.ErrCommitUnknown)
			}
			return nil
		}, nil, 2},
		"deadlock once":   {func(n int) error { return map[bool]error{true: boom}[n == 1] }, nil, 2},
		"deadlock always": {func(int) error { return boom }, boom, 3},
		"not bound":       {func(int) error { return store.ErrBinding }, store.ErrBinding, 1},
		"exhausted":       {func(int) error { return store.ErrExhausted }, store.ErrExhausted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, ns := namespace(t)
			f := &faulty{Store: ns, acquire: tc.acquire}
			err := lease.New(f, "a", fast(lease.Options{})).Hold(t.Context(), store.Relay, 0, func(context.Context, store.Lease) error { return nil })
			if !errors.Is(err, tc.want) || f.tried != tc.tried {
				t.Fatalf("%d attempts: %v", f.tried, err)
			}
		})
	}
}

// TestRenewalsThatFailEndNothing: only the store's word that a lease is lost does.
func TestRenewalsThatFailEndNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ns := namespace(t)
		f := &faulty{Store: ns, renewal: func() error { return store.ErrUnavailable }}
		err := lease.New(f, "a", fast(lease.Options{})).Hold(t.Context(), store.Relay, 0, func(ctx context.Context, _ store.Lease) error {
			time.Sleep(500 * time.Millisecond)
			return ctx.Err()
		})
		if err != nil || f.renewed < 3 {
			t.Fatalf("%d renewals: %v", f.renewed, err)
		}
	})
}

// TestPromotionTakesTheLeaseAgain: fenced by another server history is not fenced by another holder (S12).
func TestPromotionTakesTheLeaseAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		promote bool
		err     error
		runs    int
	}{
		"promoted and fenced":      {true, store.ErrFence, 2},
		"fenced by another":        {false, store.ErrFence, 1},
		"the store says it itself": {false, store.ErrServerChanged, 2},
		"promoted, lower position": {true, store.ErrProtocol, 2},
		"other failure":            {false, store.ErrIntegrity, 1},
	} {
		t.Run(name, func(t *testing.T) {
			db, ns := namespace(t)
			runs := 0
			k := lease.New(ns, "a", fast(lease.Options{Server: db.Server}))
			err := k.Hold(t.Context(), store.Relay, 0, func(_ context.Context, l store.Lease) error {
				if runs++; runs > 1 {
					return nil
				}
				if tc.promote {
					db.Promote()
				}
				return fmt.Errorf("write receipt: %w", tc.err)
			})
			if runs != tc.runs || (runs == 1) != errors.Is(err, tc.err) {
				t.Fatalf("%d runs: %v", runs, err)
			}
		})
	}
}

func TestHoldEndsWithItsContext(t *testing.T) {
	_, ns := namespace(t)
	if _, err := ns.AcquireService(t.Context(), store.Relay, 0, "b", time.Minute); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := lease.New(ns, "a", fast(lease.Options{})).Hold(ctx, store.Relay, 0, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// A lease counts as current for its time to live after the last time that the database was asked for it with success, and no
// longer: from then on somebody else may have it.
func TestSC38LeaseIsCurrentForItsTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ns := namespace(t)
		var failing atomic.Bool
		f := &faulty{Store: ns, renewal: func() error {
			time.Sleep(100 * time.Millisecond)
			if failing.Load() {
				return store.ErrUnavailable
			}
			return nil
		}}
		k := lease.New(f, "a", lease.Options{TTL: 3 * time.Second, Renew: time.Second})
		var held store.Lease
		err := k.Hold(t.Context(), store.Relay, 0, func(_ context.Context, l store.Lease) error {
			held = l
			began := time.Now()
			at := func(d time.Duration, want bool) {
				t.Helper()
				time.Sleep(time.Until(began.Add(d)))
				if got := k.Current(l); got != want {
					t.Errorf("after %v: current %v, want %v", d, got, want)
				}
			}
			at(0, true)
			at(1500*time.Millisecond, true) // renewed by a question of 1 s
			failing.Store(true)
			at(3900*time.Millisecond, true)
			at(4100*time.Millisecond, false)
			failing.Store(false)
			at(6*time.Second, true)
			other := l
			other.Term++
			if k.Current(other) {
				t.Error("a lease that is not held counts as current")
			}
			return nil
		})
		if err != nil || k.Current(held) {
			t.Errorf("after the end: %v, current %v", err, k.Current(held))
		}
	})
}
